// The informer lists and watches pods and nodes as any Go controller does, and says what that took.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

type figures struct {
	Pods      int     `json:"pods"`
	Nodes     int     `json:"nodes"`
	CPU       float64 `json:"cpu"`
	Wall      float64 `json:"wall"`
	Before    int     `json:"before"`
	After     int     `json:"after"`
	Peak      int     `json:"peak"`
	Collected int     `json:"collected"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	contentType := flag.String("content-type", "", "of the answers; client-go's own choice if not given")
	drop := flag.Bool("drop-managed-fields", false, "keep objects without managedFields")
	flag.Parse()
	measured, err := measure(*kubeconfig, *contentType, *drop)
	if err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(measured)
}

// measure counts CPU and time from before the client is made until both caches are filled.
func measure(kubeconfig, contentType string, drop bool) (*figures, error) {
	before, cpu, started := memory("VmRSS"), cpuSeconds(), time.Now()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.ContentType = contentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, options(drop)...)
	pods, nodes := factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("%v was not listed in time", kind)
		}
	}
	measured := &figures{CPU: cpuSeconds() - cpu, Wall: time.Since(started).Seconds(), Before: before}
	measured.After, measured.Peak = memory("VmRSS"), memory("VmHWM")
	runtime.GC()
	debug.FreeOSMemory()
	measured.Collected = memory("VmRSS")
	measured.Pods, measured.Nodes = len(pods.GetStore().ListKeys()), len(nodes.GetStore().ListKeys())
	return measured, nil
}

func options(drop bool) []informers.SharedInformerOption {
	if !drop {
		return nil
	}
	return []informers.SharedInformerOption{informers.WithTransform(dropManagedFields)}
}

func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// memory is a field of /proc/self/status in bytes.
func memory(field string) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	var kibibytes int
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			fmt.Sscan(rest, &kibibytes)
		}
	}
	return kibibytes << 10
}
