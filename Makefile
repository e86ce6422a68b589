# Snellen: every target sets up what it needs. `make demo` and `make test` are the two to know.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TEST_EXTRAS := dev,ocr,parquet,caption,view,browser,plots,pdf,hf-test
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

GATED := core stats scoring store engine prompt infer
COVERED := 92

.PHONY: demo test check coverage mutants bench crash fault pages clean help

help:
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[ocr,view]'
	touch $@

$(VENV)/test.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[$(TEST_EXTRAS)]'
	touch $@

demo: $(VENV)/demo.stamp ## the eye chart on the embedded reader: no network, no GPU
	$(BIN)/snellen run eyechart --model reader -o runs/demo
	@echo
	@echo "The chart, the curve and every reply, in your browser:"
	@echo
	@echo "    $(BIN)/snellen view runs/demo --open"
	@echo

test: $(VENV)/test.stamp ## the whole test suite; leaves .coverage for `make check`
	sh tests/system_packages.sh
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" --cov --cov-report=

check: $(VENV)/test.stamp coverage ## lint, types and branch coverage of the last `make test`
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

.coverage:
	$(MAKE) test

coverage: .coverage ## branch coverage of each gated room, as the last `make test` saw it
	@status=0; for room in $(GATED); do \
		printf '%-8s ' $$room; \
		$(BIN)/coverage report --include="src/snellen/$$room/*" --format=total --precision=1 --fail-under=$(COVERED) || status=1; \
	done; exit $$status

mutants: $(VENV)/test.stamp ## 400 small faults in stats, scoring, store and engine: how many do the tests find? (goes on where it was stopped)
	$(BIN)/python tests/mutants.py

bench: $(VENV)/test.stamp ## every benchmark; each prints ratios measured in one run
	status=0; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || status=1; done; exit $$status

crash: $(VENV)/test.stamp ## 100 kills of a running measurement
	$(BIN)/python -m pytest -m crash tests/fault

fault: $(VENV)/test.stamp ## scripted server faults and poisoned inputs
	$(BIN)/python -m pytest tests/fault -m "not crash"

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .coverage .mutants.jsonl

pages: $(VENV)/test.stamp ## long documents end to end on the embedded readers: plant, degrade, ask, kill, resume, draw
	$(BIN)/python examples/pages.py runs/pages
