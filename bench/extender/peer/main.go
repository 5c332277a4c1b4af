// The peer answers kube-scheduler as Reberth does, from a table that it reads once.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
)

const (
	mostGrade    = 10
	neutralScore = 5
)

type table struct {
	Notes   map[string][]string `json:"notes"`
	Leaving []string            `json:"leaving"`
	Scores  map[string]int      `json:"scores"`
}

type arguments struct {
	Pod struct {
		Metadata struct {
			OwnerReferences []struct {
				UID        string `json:"uid"`
				Controller bool   `json:"controller"`
			} `json:"ownerReferences"`
		} `json:"metadata"`
	}
	NodeNames []string
}

type filterResult struct {
	NodeNames                  []string
	FailedNodes                map[string]string
	FailedAndUnresolvableNodes map[string]string
	Error                      string
}

type hostPriority struct {
	Host  string
	Score int
}

type set map[string]struct{}

// peer holds what does not change, and counts.
type peer struct {
	avoided  map[string]set // by the uid of the controller; the leaving nodes are in each
	leaving  set
	scores   map[string]int
	answered atomic.Int64
}

func main() {
	address := flag.String("listen", "", "host and port")
	file := flag.String("table", "", "what to answer from")
	flag.Parse()
	served, err := load(*file)
	if err != nil {
		log.Fatalln("peer:", err)
	}
	log.Fatalln("peer:", http.ListenAndServe(*address, served.routes()))
}

func load(file string) (*peer, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var read table
	if err := json.Unmarshal(content, &read); err != nil {
		return nil, err
	}
	avoided := map[string]set{}
	for uid, noted := range read.Notes {
		avoided[uid] = setOf(noted, read.Leaving)
	}
	return &peer{avoided: avoided, leaving: setOf(read.Leaving), scores: read.Scores}, nil
}

func setOf(lists ...[]string) set {
	made := set{}
	for _, list := range lists {
		for _, each := range list {
			made[each] = struct{}{}
		}
	}
	return made
}

func (p *peer) routes() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("POST /avoid/filter", answer(p, p.filter))
	routes.HandleFunc("POST /avoid/prioritize", answer(p, p.avoid))
	routes.HandleFunc("POST /scores/prioritize", answer(p, p.score))
	routes.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "reberth_extender_requests_total{result=\"answered\"} %d\n", p.answered.Load())
	})
	return routes
}

func answer[T any](p *peer, decide func(*arguments) T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var asked arguments
		if err := json.Unmarshal(body, &asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		written, err := json.Marshal(decide(&asked))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(written)))
		w.Write(written)
		p.answered.Add(1)
	}
}

func (p *peer) filter(asked *arguments) filterResult {
	none := map[string]string{}
	return filterResult{NodeNames: asked.NodeNames, FailedNodes: none, FailedAndUnresolvableNodes: none}
}

func (p *peer) avoid(asked *arguments) []hostPriority {
	avoided := p.avoidedBy(asked)
	graded, good := make([]hostPriority, len(asked.NodeNames)), 0
	for place, node := range asked.NodeNames {
		graded[place] = hostPriority{Host: node}
		if _, found := avoided[node]; !found {
			graded[place].Score = mostGrade
			good++
		}
	}
	if good == 0 {
		for place := range graded {
			graded[place].Score = mostGrade
		}
	}
	return graded
}

func (p *peer) avoidedBy(asked *arguments) set {
	for _, owner := range asked.Pod.Metadata.OwnerReferences {
		if avoided, found := p.avoided[owner.UID]; found && owner.Controller {
			return avoided
		}
	}
	return p.leaving
}

func (p *peer) score(asked *arguments) []hostPriority {
	graded := make([]hostPriority, len(asked.NodeNames))
	for place, node := range asked.NodeNames {
		score, found := p.scores[node]
		if !found {
			score = neutralScore
		}
		graded[place] = hostPriority{Host: node, Score: score}
	}
	return graded
}
