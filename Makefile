# Snellen: every target sets up what it needs. `make demo` and `make test` are the two to know.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
comma := ,
TEST_EXTRAS := dev,docs,ocr,parse,parse-ocrbench,parquet,xlsx,inspect,caption,view,browser,plots,pdf,video,hf-test,train,ray,bedrock,vertex,hub,otel
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

ENGINES := build/engines
OUTSIDE := ../shared/data
GATED := core stats scoring store engine prompt infer kits/bank
COVERED := 92
FIGURES := SNELLEN_FIGURES=docs/reliability.md
# A test starts many commands: each would compile what it imports where the machine forbids bytecode beside the sources.
# The workers are as many as the cores: threads of torch inside each would only wait for one another.
PYTEST := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(CURDIR)/.cache/pyc OMP_NUM_THREADS=1 $(BIN)/python -m pytest
SPREAD := -n 3 --dist worksteal

.PHONY: outside demo demo-video demo-pages demo-look exam test nightly check coverage mutants bench crash fault soak hostile recount engines ray slurm pages contamination train-demo train-test docs lock release clean help

help:
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[ocr,view]'
	touch $@

# torch first and without a hash, because its wheel differs by machine; all others exactly as locked.
$(VENV)/test.stamp: pyproject.toml requirements/torch.txt requirements/test.lock | $(BIN)/python
	$(PIP) install -r requirements/torch.txt
	$(PIP) install --require-hashes --no-deps -r requirements/test.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	touch $@

demo: $(VENV)/demo.stamp ## the eye chart on the embedded reader: no network, no GPU
	$(BIN)/snellen run eyechart --model reader -o runs/demo
	@echo
	@echo "The chart, the curve and every reply, in your browser:"
	@echo
	@echo "    $(BIN)/snellen view runs/demo --open"
	@echo

demo-video: $(VENV)/video.stamp ## a code hidden in drawn films, looked for by the embedded reader with few frames and with more
	$(BIN)/snellen run video-needle --model reader --variant frames=4 --variant frames=16 -o runs/demo-video

$(VENV)/video.stamp: $(VENV)/demo.stamp
	$(PIP) install -e '.[video]'
	touch $@

demo-pages: $(VENV)/pages.stamp ## drawn pages turned into text by the embedded reader, clean and as poor scans
	$(BIN)/snellen run pages-own --model reader --variant base --variant perturb=jpeg:3 -o runs/demo-pages

$(VENV)/pages.stamp: $(VENV)/demo.stamp
	$(PIP) install -e '.[parse]'
	touch $@

demo-look: $(VENV)/demo.stamp ## small letters on large pages, read with and without a zoom by a scripted agent around the embedded reader
	$(BIN)/python examples/look_agent.py runs/demo-look/rows
	$(BIN)/snellen run runs/demo-look/rows/rows.jsonl --plugin examples/look_agent.py --model looker/4 --tools zoom --tool-arms base,plain,grey -o runs/demo-look/looker

exam: $(VENV)/demo.stamp ## the eye exam on the embedded reader: thresholds and a prescription
	$(BIN)/snellen exam --model reader --quick -o runs/exam

test: $(VENV)/test.stamp ## the whole test suite; with COVERAGE=yes it leaves .coverage for `make check`
	sh tests/system_packages.sh
	$(PYTEST) $(SPREAD) -rfEs -m "not slow and not nightly" $(if $(COVERAGE),--cov --cov-report=)

nightly: $(VENV)/test.stamp ## what `make test` leaves out: all draws of the simulations, every case that starts Java, mlflow and wandb
	$(PYTEST) $(SPREAD) -rfEs -m nightly

check: $(VENV)/test.stamp coverage ## lint, types and branch coverage of the gated rooms
	$(BIN)/ruff check src tests benchmarks examples tools
	$(BIN)/ruff format --check src tests benchmarks examples tools
	$(BIN)/mypy

# Older than a source, it is measured anew by the tests that coverage follows (tests/conftest.py), not by the whole suite.
.coverage: $(shell find src/snellen tests -name '*.py')
	$(PYTEST) $(SPREAD) -m "not slow and not nightly" --followed --cov --cov-report=

coverage: $(VENV)/test.stamp .coverage ## branch coverage of each gated room, measured anew if a source has changed since
	@status=0; for room in $(GATED); do \
		printf '%-9s ' $$room; \
		$(BIN)/coverage report --include="src/snellen/$$room/*" --format=total --precision=1 --fail-under=$(COVERED) || status=1; \
	done; exit $$status

outside: $(VENV)/test.stamp ## files and replies that benchmark authors published, from $(OUTSIDE): loaded, asked, scored, one table
	$(BIN)/python tools/outside.py $(OUTSIDE)

mutants: $(VENV)/test.stamp ## 400 small faults in the rooms and kits that make numbers: how many do the tests that execute them find? (goes on where it was stopped)
	$(BIN)/python tests/mutants.py

bench: $(VENV)/test.stamp ## every benchmark; each prints ratios measured in one run
	status=0; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || status=1; done; \
	$(BIN)/python benchmarks/throughput.py dialects || status=1; exit $$status

crash: $(VENV)/test.stamp ## 100 kills of each kind of work, 1,000 cuts and flipped bits, power cuts; writes docs/reliability.md
	$(FIGURES) $(PYTEST) -m crash tests/fault

fault: $(VENV)/test.stamp ## scripted server faults, poisoned inputs, keys, many at once; writes docs/reliability.md
	$(FIGURES) $(PYTEST) tests/fault -m "not crash and not soak"

soak: $(VENV)/test.stamp ## 20 minutes of faults with a kill a minute, the limit against a cap; writes docs/reliability.md
	$(FIGURES) $(PYTEST) -m soak tests/fault

hostile: $(VENV)/test.stamp ## 20,000 exchanges with drawn hostile servers
	$(PYTEST) tests/fault/test_hostile_servers.py

recount: $(VENV)/test.stamp ## 2,000 random runs: every number of their results counted again in plain Python
	$(BIN)/python tests/recount.py 2000

# An environment of its own: vLLM pins the packages it shares with us. torch first, or a build for GPUs is taken; what only hears
# and films is linked against CUDA and would not load. tests/engines/shim names torchvision's operators for the same reason.
$(ENGINES)/engines.stamp: requirements/torch.txt requirements/engines.txt pyproject.toml
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip --disable-pip-version-check -q install -r requirements/torch.txt
	$(ENGINES)/bin/python -m pip --disable-pip-version-check -q install -r requirements/engines.txt
	$(ENGINES)/bin/python -m pip --disable-pip-version-check -q uninstall -y torchaudio torchcodec
	$(ENGINES)/bin/python -m pip --disable-pip-version-check -q install --no-build-isolation -e .
	touch $@

engines: $(ENGINES)/engines.stamp ## real vLLM on the CPU, server and offline engine, against hf/ (3.5 GB and ten minutes, once)
	PYTHONPATH=tests/engines/shim $(ENGINES)/bin/python -m pytest -s tests/engines

contamination: $(VENV)/test.stamp ## small checkpoints trained on a test for 0 to 10 epochs: how many `snellen contaminated` finds (an hour)
	$(BIN)/python benchmarks/contamination.py build/contamination --seeds 20 --first 100

train-demo: $(VENV)/test.stamp ## learning that can be seen: a small model from nothing, SFT, then feedback; three seeds, 25 minutes
	$(BIN)/python examples/train_demo.py runs/train-demo --seeds 1 2 3

train-test: $(VENV)/test.stamp ## every trainer on two architectures, killed and resumed trainings, two processes
	$(PYTEST) -m slow tests/integration/test_training.py tests/integration/test_training_whole.py tests/integration/test_train_demo.py

ray: $(VENV)/test.stamp ## three Ray nodes in this machine: 2,000 trials each on a checkpoint and a server, 20 replicas, 2 nodes and the driver killed
	$(PYTEST) -s tests/ray

slurm: $(VENV)/test.stamp ## runs in parts on a real Slurm of Debian's packages: killed, pre-empted, timed out and lost parts; writes docs/reliability.md
	sh tests/system_packages.sh slurm
	$(FIGURES) $(PYTEST) -m slow tests/slurm

# Only what a site is made with: nothing of torch, Ray or browsers.
$(VENV)/docs.stamp: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[docs]'
	touch $@

docs: $(VENV)/docs.stamp ## the documentation as a site: build/site/index.html
	@began=$$(date +%s); $(BIN)/python tools/decisions.py && \
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && \
	$(BIN)/python tools/docs_words.py --since $$began

lock: | $(BIN)/python ## requirements/test.lock anew from pyproject.toml
	$(PIP) install uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--override requirements/without-torch.txt --no-emit-package torch $(addprefix --extra ,$(subst $(comma), ,$(TEST_EXTRAS))) \
		pyproject.toml requirements/test.in -o requirements/test.lock

release: $(VENV)/test.stamp ## wheel and sdist in dist/, checked, installed, tried, with checksums
	$(BIN)/python tools/release.py dist

clean:
	rm -rf $(VENV) build dist .cache .pytest_cache .mypy_cache .ruff_cache .coverage

pages: $(VENV)/test.stamp ## long documents end to end on the embedded readers: plant, degrade, ask, kill, resume, draw
	$(BIN)/python examples/pages.py runs/pages
