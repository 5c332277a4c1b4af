# Every target works in a fresh clone: it creates the Python environment and builds what it needs.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
NODES ?= 30
.DEFAULT_GOAL := help
.PHONY: help report up down generate test lint bench soak lock clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 8

up: export REBERTH_STARTED := $(shell date +%s)
up: $(VENV)/installed ## start a real cluster on this machine and show Reberth on it (WITH=federation adds a hub and two members)
	@$(RUN) -m localcluster up --nodes $(NODES) --apply manifests/crds
	@$(RUN) -m localproduct show
	@$(if $(filter federation,$(WITH)),$(RUN) -m localproduct.federated up,true)

report: $(VENV)/installed ## show what there is to gain in the cluster of your kubeconfig; it only reads (OPTIONS="-o html")
	@$(RUN) -m kubectl_reberth report $(OPTIONS)

down: $(VENV)/installed ## stop all of it and delete its folders
	@$(RUN) -m localproduct.federated down
	@$(RUN) -m localcluster down

generate: $(VENV)/installed ## write the dashboards, the alerts, the commented policy and the support matrix
	@$(RUN) -m generating

test: $(VENV)/installed ## run lint, types, layers, unit, speed and live tests
	@$(RUN) tests/suites.py

lint: $(VENV)/installed ## run lint, types and layers only
	@$(RUN) tests/suites.py lint types layers

bench: $(VENV)/installed ## run the benchmarks against similar tools
	@$(RUN) tests/suites.py bench

soak: $(VENV)/installed ## run the long-running tests; continues where it was stopped
	@$(RUN) tests/suites.py soak

lock: $(VENV)/installed ## update the locked requirements from pyproject.toml
	@$(RUN) requirements/lock.py

clean: ## delete what was built in this folder
	rm -rf $(VENV) .build dist

$(VENV)/installed: requirements/dev.txt
	@test ! -L $(VENV) || { echo "reberth: $(VENV) is a link to an environment that is older than requirements/dev.txt:" \
	  "update that environment, or remove the link; make does not replace it through the link" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "reberth: $(PYTHON) is missing: install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "reberth: $(PYTHON) is too old: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "reberth: creating the Python environment in $(VENV)" >&2
	@$(PYTHON) -m venv --clear $(VENV) || \
	  { echo "reberth: $(PYTHON) cannot create environments: install its venv module (Debian: python3-venv)" >&2; exit 1; }
	@$(RUN) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt || \
	  { echo "reberth: cannot install the Python packages of requirements/dev.txt: is PyPI reachable?" >&2; exit 1; }
	@touch $@
