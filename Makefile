# The tasks of this repository. `make` alone lists them.
# Needs make and Python 3.11 or newer; everything else is installed into .venv.

PYTHON ?= python3
SEEDS  ?= 1..1000
KILL_ROUNDS ?= 50
CHAOS_ROUNDS ?= 20
# Tests run in this many processes.
JOBS   ?= 2

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
# Running needs a third of what the tests need.
RUN_STAMP := $(VENV)/.installed-to-run

.DEFAULT_GOAL := help
.PHONY: help setup run demo test unit lint format coverage slow simulate bench bench-peers bench-chaos bench-predictions docs proto options build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with Duetime and the development tools

# Installs Duetime with one of its extras, editable, so that a later extra adds to it.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Duetime needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Installing $(2) into $(VENV) (once; again when pyproject.toml changes)"
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python "$$(command -v $(PYTHON))" $(VENV) && \
	  VIRTUAL_ENV=$(VENV) uv pip install --quiet -e '.[$(1)]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(1)]'; \
	fi
endef

$(STAMP): pyproject.toml
	$(call install,dev,Duetime and the development tools)
	@touch $(RUN_STAMP) $@

$(RUN_STAMP): pyproject.toml
	$(call install,all,Duetime)
	@touch $@

run: $(RUN_STAMP) ## start the server: http://localhost:7928, data in ./duetime-data; ARGS="--port 7930"
	@$(BIN)/duetime serve $(ARGS)

demo: $(RUN_STAMP) ## run the demos of an embedded engine and of a server with webhooks
	@$(BIN)/duetime demo
	@$(BIN)/duetime demo --server

test: lint unit ## run what every change must pass: lint, then all tests that are not slow

unit: $(STAMP) ## run only the tests
	@$(BIN)/pytest -q -n $(JOBS)

lint: $(STAMP) ## check style, format, types and the direction of imports
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "Some files are not formatted: run make format." >&2; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo --no-cache

format: $(STAMP) ## format the code and sort its imports
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

# Without the contract of channels: CPython 3.11 loses exceptions thrown into a generator that is traced.
# Does not use pytest-cov: the pytest plugin imports Duetime before pytest-cov starts to measure.
coverage: $(STAMP) ## check that every branch of kernel/, log/ and the engine's shell is covered
	@$(BIN)/coverage run --source=duetime.kernel,duetime.log,duetime.engine.shell -m pytest -q tests/unit/kernel \
	  tests/unit/log tests/unit/protocol tests/unit/engine/shell tests/contract/test_log.py \
	  tests/contract/test_stores.py tests/scenarios tests/flaws tests/sim/test_found.py \
	  tests/sim/test_checkers_can_fail.py tests/sim/test_claims_can_fail.py
	@$(BIN)/coverage report --fail-under=100

slow: $(STAMP) ## run the long tests: many seeds, KILL_ROUNDS=50 rounds of kill -9
	@SEEDS=$(SEEDS) KILL_ROUNDS=$(KILL_ROUNDS) $(BIN)/pytest -q -n $(JOBS) --timeout=7200 -m slow

simulate: $(RUN_STAMP) ## run the simulator over SEEDS=1..1000
	@$(BIN)/duetime simulate --seeds $(SEEDS)

bench: $(STAMP) ## run the benchmarks, print a table, save bench/results/<date>.json
	@$(BIN)/python -m bench $(BENCH)

bench-peers: $(STAMP) ## compare Duetime with other job systems, write the tables of bench/README.md
	@$(BIN)/python -m bench.peers --write

bench-chaos: $(STAMP) ## kill server and worker CHAOS_ROUNDS=20 times under load, count what is lost
	@CHAOS_ROUNDS=$(CHAOS_ROUNDS) $(BIN)/python -m bench chaos

bench-predictions: $(STAMP) ## measure what the order by expected duration gains, and the error of predictions
	@$(BIN)/python -m bench predictions

docs: $(STAMP) ## generate the reference pages in docs/
	@$(BIN)/python -m tools.generate_docs

proto: $(STAMP) ## generate the gRPC messages in src/duetime/v1 from proto/
	@$(BIN)/python -m tools.generate_proto

options: $(STAMP) ## generate the keyword options of Python from src/duetime/wire
	@$(BIN)/python -m tools.generate_options

build: $(STAMP) ## build the wheel and the source archive into dist/
	@$(BIN)/python -m build --outdir dist .

clean: ## remove everything that the other targets created
	@rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis htmlcov
	@rm -f .coverage .coverage.*
	@find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
