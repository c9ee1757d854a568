# Two commands matter: `make demo` trains an agent on duel, `make test` runs the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DOCS_INSTALLED := $(VENV)/.docs_installed
TESTABLE := $(VENV)/.testable
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# one more than cores, as many tests wait for processes or pauses
TEST_WORKERS ?= $(shell echo $$(($$(nproc) + 1)))
# https://download.pytorch.org/whl/cpu has the build of torch without CUDA, a tenth of the other one
TORCH_INDEX ?=
DEMO_DIR ?= runs/demo_$(shell date +%Y%m%d_%H%M%S)

# with it, each of the hundreds of processes that the tests start would compile the package anew
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo pretrained test test-slow test-ci lint format docs reference rom lock clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 16

install: $(INSTALLED)  ## create .venv and install the locked packages of a run into it

$(INSTALLED): requirements.lock requirements-torch.lock pyproject.toml setup.py \
    game_rl/emulator/fast_states.pyx
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "game_rl needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1);"; \
	  echo "name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments; on Debian: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP_INSTALL) --require-hashes --no-deps --requirement requirements.lock
	$(PIP_INSTALL) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) --requirement requirements-torch.lock
	$(PIP_INSTALL) --no-deps --editable .
	@touch $@

$(TESTABLE): $(INSTALLED) requirements-dev.lock
	$(PIP_INSTALL) --require-hashes --no-deps --requirement requirements-dev.lock
	@touch $@

demo: $(INSTALLED)  ## train the default config on duel, evaluate it, record a GIF
	$(BIN)/python train.py --config configs/duel_ppo.yaml --set run_dir=$(DEMO_DIR)

pretrained: $(INSTALLED)  ## train and pack an agent that comes with game_rl: make pretrained AGENT=duel
	$(BIN)/python pretrained/build.py $(AGENT)

TESTS ?= not slow and not soak and not gpu
TEST_OPTIONS ?=

test: $(TESTABLE)  ## every part once, in minutes; test-slow has the rest
	$(BIN)/python -m pytest -m "$(TESTS)" --numprocesses $(TEST_WORKERS) $(TEST_OPTIONS)

test-slow: $(TESTABLE)  ## the tests that take more than a second of processor time, properties on all examples
	$(BIN)/python -m pytest -m "slow or soak or hypothesis" --hypothesis-profile full

# in one go: each worker of a clean clone takes twenty seconds to collect the tests, and properties are
# tried once; with one worker more, as slow tests wait for processes
test-ci:  ## test and test-slow in one, without the tests that CI leaves out
	$(MAKE) test TESTS="(not soak and not gpu) or hypothesis" TEST_WORKERS=$$(($(TEST_WORKERS) + 1)) \
	  TEST_OPTIONS="--hypothesis-profile full --dist worksteal"

lint: $(TESTABLE)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(TESTABLE)  ## format the code with ruff
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

docs: $(DOCS_INSTALLED)  ## build the docs as a site in docs/_build; every warning is an error
	$(BIN)/python -m sphinx -W -n -E -a --keep-going docs docs/_build

$(DOCS_INSTALLED): $(INSTALLED) pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

reference: $(INSTALLED)  ## rewrite the generated parts of the docs' reference
	$(BIN)/python docs/reference_text.py

rom:  ## rebuild the bundled games from their source (needs sdcc)
	@command -v sdcc >/dev/null || { echo "sdcc is missing; on Debian: apt install sdcc"; exit 1; }
	set -e; for game in rom_sources/*/Makefile; do $(MAKE) -C $$(dirname $$game); done

# Torch has a file of its own: its builds for the CPU and for each CUDA differ in their hashes and in
# what they need. What torch needs on a GPU alone is left out of the other files for the same reason.
LOCK := $(VENV)-lock
COMPILE = $(LOCK)/bin/uv pip compile --quiet --no-header --no-annotate --upgrade --generate-hashes \
  --universal --fork-strategy fewest --python-version 3.11 \
  --constraint requirements-torch.lock pyproject.toml
NOT_LOCKED := /^\(torch\|triton\|nvidia-[a-z0-9-]*\|cuda-[a-z0-9-]*\)[= ]/,/[^\\]$$/d

lock:  ## renew requirements.lock and requirements-dev.lock from pyproject.toml
	$(PYTHON) -m venv --clear $(LOCK)
	$(LOCK)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) --extra dev --output-file $(LOCK)/-dev
	$(COMPILE) --constraint $(LOCK)/-dev --output-file $(LOCK)/-run
	{ sed -n '/^#/p' requirements.lock; sed '$(NOT_LOCKED)' $(LOCK)/-run; } > $(LOCK)/run
	{ sed -n '/^#/p' requirements-dev.lock; sed '$(NOT_LOCKED)' $(LOCK)/-dev; } > $(LOCK)/dev
	mv $(LOCK)/run requirements.lock
	mv $(LOCK)/dev requirements-dev.lock
	rm -rf $(LOCK)

clean:  ## remove .venv, caches, built docs and packages; runs and ROMs stay
	rm -rf $(VENV) docs/_build build dist .pytest_cache .mypy_cache .ruff_cache *.egg-info
