# Every target sets up what it needs from a clean clone: Python 3.11+, pip and make are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint bench attack docs reproduce clean

help:
	@echo "make demo   fit robust and plain policies on bundled data, print a table, write a picture and a report"
	@echo "make test   run every test"
	@echo "make lint   style, types and import layers"
	@echo "make bench  rerun the benchmarks (minutes to hours; results go to benchmarks/results)"
	@echo "make attack  2,000 hostile problems against independent convex programs (about 40 minutes)"
	@echo "make docs   build the documentation into site/"
	@echo "make reproduce  the paper's experiments in their quick form (about a minute)"

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[cli]"
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/surefoot demo

# Bytecode is written even where the shell says otherwise: each of the dozens of processes that tests start would
# compile the package anew, which takes a second.
test: $(VENV)/.dev
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

attack: $(VENV)/.dev
	$(BIN)/python -m pip install -q -e ".[ray]"
	SUREFOOT_LAWS=nightly $(BIN)/python -m pytest -n 2 -m "nightly or not nightly"
	$(BIN)/python -m benchmarks.attack

reproduce: $(VENV)/.demo
	$(BIN)/python -m reproduction paper --quick

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs site

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
