# Everything one does with this repository. `make` alone lists it.
# Needs make and Python 3.11 or newer; everything else is installed into .venv.

PYTHON ?= python3
SEEDS  ?= 1..1000
KILL_ROUNDS ?= 50
# Tests run in this many processes.
JOBS   ?= 2

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup run demo test unit lint format coverage slow simulate bench bench-peers docs proto options build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with Duetime and the tools of its developers

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Duetime needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Installing into $(VENV) (once; again when pyproject.toml changes)"
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python "$$(command -v $(PYTHON))" $(VENV) && \
	  VIRTUAL_ENV=$(VENV) uv pip install --quiet -e '.[dev]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $@

run: $(STAMP) ## start the server: http://localhost:7928, data in ./duetime-data; ARGS="--port 7930"
	@$(BIN)/duetime serve $(ARGS)

demo: $(STAMP) ## watch an engine work, then a server with webhooks, with an account at the end of each
	@$(BIN)/duetime demo
	@$(BIN)/duetime demo --server

test: lint unit ## all that a change must pass: lint, then every test that is not slow

unit: $(STAMP) ## the tests alone
	@$(BIN)/pytest -q -n $(JOBS)

lint: $(STAMP) ## style, format, types, direction of imports
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "Some files are not formatted: run make format." >&2; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo --no-cache

format: $(STAMP) ## format the code and put its imports in order
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

# Without the contract of channels: CPython 3.11 loses what is thrown into a generator that is traced.
# Not by pytest-cov: the pytest plugin imports Duetime before pytest-cov begins to look.
coverage: $(STAMP) ## branch coverage of kernel/, log/ and the engine's shell, which must be complete
	@$(BIN)/coverage run --source=duetime.kernel,duetime.log,duetime.engine.shell -m pytest -q tests/unit/kernel \
	  tests/unit/log tests/unit/protocol tests/unit/engine/shell tests/contract/test_log.py \
	  tests/contract/test_stores.py tests/scenarios tests/flaws tests/sim/test_found.py \
	  tests/sim/test_checkers_can_fail.py tests/sim/test_claims_can_fail.py
	@$(BIN)/coverage report --fail-under=100

slow: $(STAMP) ## the long tests: many seeds, KILL_ROUNDS=50 rounds of kill -9
	@SEEDS=$(SEEDS) KILL_ROUNDS=$(KILL_ROUNDS) $(BIN)/pytest -q -n $(JOBS) --timeout=7200 -m slow

simulate: $(STAMP) ## run the simulator over SEEDS=1..1000
	@$(BIN)/duetime simulate --seeds $(SEEDS)

bench: $(STAMP) ## run the benchmarks, print a table, save bench/results/<date>.json
	@$(BIN)/python -m bench $(BENCH)

bench-peers: $(STAMP) ## measure Duetime beside other job systems, write the tables of bench/README.md
	@$(BIN)/python -m bench.peers --write

docs: $(STAMP) ## write the generated pages of docs/ again
	@$(BIN)/python -m tools.generate_docs

proto: $(STAMP) ## make the gRPC messages of src/duetime/v1 out of proto/ again
	@$(BIN)/python -m tools.generate_proto

options: $(STAMP) ## write the keyword options of Python from src/duetime/wire again
	@$(BIN)/python -m tools.generate_options

build: $(STAMP) ## build the wheel and the source archive into dist/
	@$(BIN)/python -m build --outdir dist .

clean: ## remove everything made by the targets above
	@rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis htmlcov
	@rm -f .coverage .coverage.*
	@find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
