# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
# The rules call `xlgrid`, and snakefmt calls `shfmt`, by name.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Each process of pytest would compile all tests anew.
export PYTHONDONTWRITEBYTECODE :=
.PHONY: demo test test-all test-plugin test-xlgrid test-fast mutants docs lint format lock clean
# Which tests run. Those marked `thorough` take minutes and find little.
SELECT := not thorough
# More processes would take turns, because the tests of the plugins run beside them. Each needs half a minute to begin.
PROCESSES := $(shell nproc | awk '{ print ($$1 < 2) ? 2 : ($$1 > 8) ? 8 : $$1 }')
# A test file runs in one process, because its tests share what its fixtures make.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --dist loadfile

# On the CPU, on a machine with GPUs, too: the numbers of the demo and of tests are those of a CPU. `make demo CUDA_VISIBLE_DEVICES=0` takes
# the first GPU.
demo test-xlgrid test-fast: export CUDA_VISIBLE_DEVICES =

demo: .venv/installed
	@test -n "$(CUDA_VISIBLE_DEVICES)" || echo "All of it computes on the CPU (CUDA_VISIBLE_DEVICES is set to nothing)"
	$(BIN)/snakemake --profile laptop
	@echo "Open results/demo/report.html"

# The tests of the library compute while the tests of the plugins wait for Slurm.
test: .venv/installed
	$(MAKE) --jobs 2 test-plugin test-xlgrid

# Workflows begin, because one of them would leave cores idle at the end.
test-xlgrid: .venv/installed
	@test -n "$(CUDA_VISIBLE_DEVICES)" || echo "All tests compute on the CPU (CUDA_VISIBLE_DEVICES is set to nothing)"
	$(PYTEST) --numprocesses $(PROCESSES) --no-loadscope-reorder -m "$(SELECT)" tests/workflow tests/unit

# All tests, with those marked `thorough`, too: LaTeX, other Pythons, the container, the site, every combination of parts.
test-all: .venv/installed
	$(MAKE) test SELECT="thorough or not thorough"

test-plugin: .venv/installed
	$(PYTEST) --numprocesses 2 -m "$(SELECT)" packages/snakemake-executor-plugin-submitit
	$(BIN)/python -m pytest packages/snakemake-logger-plugin-xlgrid

# The unit tests without those marked `slow`.
test-fast: .venv/installed
	$(PYTEST) --numprocesses $(PROCESSES) -m "not slow and not thorough" tests/unit

# Whether tests fail on small changes of the code: see benchmarks/mutants.py. A hundred changes take about an hour.
mutants: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check "cosmic-ray>=8.4,<9" "pytest-cov>=6,<8"
	$(BIN)/python benchmarks/mutants.py

# The documentation as a site, in site/. A link that leads nowhere is an error. Nothing is read from the network.
docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open site/index.html"

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow rules
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/snakemake --lint

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow rules

# Write the lock anew. A version that still fits stays; `make lock UPGRADE=--upgrade` takes the newest ones.
lock: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check "uv>=0.13,<1"
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --no-annotate $(UPGRADE) \
		$(addprefix --no-emit-package ,xlgrid $(notdir $(wildcard packages/*))) --custom-compile-command "make lock" \
		--output-file envs/lock.txt pyproject.toml packages/*/pyproject.toml

# uv installs the lock in a fraction of the time of pip. It does not read pip's settings, such as a mirror or a certificate, so that pip
# follows where uv cannot install. `make UV= ...` uses pip alone.
UV := $(shell command -v uv)
# The file is touched last, so that an interrupted installation is done again. A new pip takes half the time of one that comes with
# Python 3.11, and the lock has all dependencies. pip compiles to bytecode on one core, compileall on
# all cores, and not the tests of packages; compileall fails on files for later Pythons, which nothing imports.
.venv/installed: envs/lock.txt pyproject.toml $(wildcard packages/*/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "xlgrid needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1): install one, and run make with PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(if $(UV),,--upgrade-deps) .venv
	$(if $(UV),$(UV) pip install --quiet --python $(BIN)/python --no-deps -r envs/lock.txt ||) \
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps -r envs/lock.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . $(foreach package,$(wildcard packages/*),--editable $(package))
	$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' .venv src $(wildcard packages/*/src) || true
	@touch $@

clean:
	rm -rf .venv .snakemake results/*/
