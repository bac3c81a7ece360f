# Everything here sets itself up: Python 3.11 or later, make and a package index are all that a machine needs.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two workers a core: most tests wait for servers and programs more than they compute.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2))))
PYTEST_ARGS ?= -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help venv test test-long lint pytest demo bench-allocator bench-api bench-explain bench-plan bench-beside bench-alignment bench-hostile bench-node lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP) ## create .venv from the lock; quick when nothing changed
	@:

# The stamp is newer than the lock and pyproject.toml exactly when the environment holds what they say.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Drayman needs Python 3.11 or later; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "setting up $(VENV), which takes a minute or two" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@$(BIN)/python -m compileall -q src # where Python is told not to write bytecode, every command would compile anew
	@touch $@

test: lint pytest ## lint, types, import layers, then every test

# The same tests with more rounds of every hypothesis law, and the recorded scenarios of scheduling with more patience and policies.
test-long: export HYPOTHESIS_PROFILE = long
test-long: test ## the same with many more rounds of each law

lint: venv
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --strict --no-error-summary src
	@$(BIN)/lint-imports --no-logo

# After `lint` also under `make -j`, so that the closing line of pytest is the last thing printed.
pytest: venv lint
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

demo: venv ## the examples on three simulated nodes
	@$(BIN)/drayman demo

bench-allocator: venv ## time of the search per problem, beside upstream's
	@$(BIN)/python benchmarks/allocator.py

bench-api: venv ## writes, reads and watches per second of the API server
	@$(BIN)/python benchmarks/api.py

bench-explain: venv ## time to explain a pod that waits on 5,000 nodes
	@$(BIN)/python benchmarks/explain.py

bench-plan: venv ## time to plan 1,000 pods on 5,000 nodes, reading included
	@$(BIN)/python benchmarks/plan.py

bench-beside: venv ## what explain and plan cost a scheduler that is busy
	@$(BIN)/python benchmarks/beside.py

bench-alignment: venv ## how often pods get the nearest devices, beside first fit
	@$(BIN)/python benchmarks/alignment.py

bench-hostile: venv ## how long others wait while a user with edit rights is hostile
	@$(BIN)/python benchmarks/hostile.py

bench-node: venv ## what a claim adds to the start of a pod on a real node, and 100 pods at once
	@$(BIN)/python benchmarks/node.py

# Resolves afresh in a throw-away environment. The lock names no index, so it installs from whichever one pip is set up for.
lock: ## write requirements.lock anew from pyproject.toml
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && $(PYTHON) -m venv "$$tools" \
		&& "$$tools/bin/pip" install --quiet --disable-pip-version-check pip-tools \
		&& "$$tools/bin/pip-compile" pyproject.toml --quiet --upgrade --rebuild --extra dev --all-build-deps \
			--generate-hashes --allow-unsafe --strip-extras --annotation-style=line \
			--no-header --no-emit-options --output-file "$$tools/lock" \
		&& { echo '# Exact versions and hashes of everything that development, the tests and the demo need. Written by `make lock`.'; \
			cat "$$tools/lock"; } > requirements.lock

clean: ## remove .venv, caches and build output
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
