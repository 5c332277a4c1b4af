# Every target works as the first command ever typed: it makes its own environment and builds what it needs.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
NODES ?= 30
.DEFAULT_GOAL := help
.PHONY: help up down generate test lint bench soak lock clean

help: ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 8

up: export REBERTH_STARTED := $(shell date +%s)
up: $(VENV)/installed ## the product at work on a real cluster on this machine (WITH=federation: and a hub with two members)
	@$(RUN) -m localcluster up --nodes $(NODES) --apply manifests/crds
	@$(RUN) -m localproduct show
	@$(if $(filter federation,$(WITH)),$(RUN) -m localproduct.federated up,true)

down: $(VENV)/installed ## take it down again
	@$(RUN) -m localproduct.federated down
	@$(RUN) -m localcluster down

generate: $(VENV)/installed ## write the dashboard, the alerts and the commented policy
	@$(RUN) -m generating

test: $(VENV)/installed ## lint, types, layers, unit and live tests
	@$(RUN) tests/suites.py

lint: $(VENV)/installed ## lint, types and layers alone
	@$(RUN) tests/suites.py lint types layers

bench: $(VENV)/installed ## measure side by side with peers
	@$(RUN) tests/suites.py bench

soak: $(VENV)/installed ## the long proofs; resumes where it was stopped
	@$(RUN) tests/suites.py soak

lock: $(VENV)/installed ## write the hashed requirements anew from pyproject.toml
	@$(RUN) requirements/lock.py

clean: ## remove what was built in this folder
	rm -rf $(VENV) .build dist

$(VENV)/installed: requirements/dev.txt
	@test ! -L $(VENV) || { echo "reberth: $(VENV) is a link, and what it points to is older than requirements/dev.txt:" \
	  "bring that up to date, or remove the link; it is not made anew through it" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "reberth: $(PYTHON) is missing: install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "reberth: $(PYTHON) is too old: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "reberth: making the Python environment in $(VENV)" >&2
	@$(PYTHON) -m venv --clear $(VENV) || \
	  { echo "reberth: $(PYTHON) cannot make environments: install its venv module (Debian: python3-venv)" >&2; exit 1; }
	@$(RUN) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt || \
	  { echo "reberth: the Python packages of requirements/dev.txt cannot be had: is PyPI reachable?" >&2; exit 1; }
	@touch $@
