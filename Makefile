# make demo    a dump of the example, on the screen
# make test    lint, format, types; the decompiler's tests on every Python that is here, all tests but the slow ones on 3.11
# make slow    the tests of more than ten seconds, which make test leaves out
# make docs    the documentation as a site, in build/site, with links and anchors checked
# make test-decompiler   the tests of the decompiler alone, on 3.11
# make quick   what to run while you work: the tests that take little time, of every part; about five minutes on two cores
# make pythons the second of these (tools/check/check_pythons.sh [--quick | --all] [VERSION...] has choices)
# make sweep   decompile and verify the whole standard library (WHAT=json,... for less)
# make others  other people's tests on decompiled code: CPython's and those of packages (ARGS="json attrs -j 2" for less)
# make matrix  the torch tests on every pair of a Python and a PyTorch (PAIRS='3.12+2.9.1 ...' for less)
# make mutants a mutation test of the verifier: 5,000 changes of decompiled sources (MUTANTS=300 for less)
# make random  decompile 10,000 random programs of each kind, and run both (ARGS="--kind flow -n 500" for less)
# make peers   other decompilers on the same code objects: share right, and time
# make cost    CPU seconds and memory of whole programs, plain and attached (ARGS="--programs bert --backends eager" for less)
# make bench   time per instruction, cost compared with the parser, cost of prepare_debug

# Without bytecode in its cache each process that imports depyf compiles up to 440 modules, which takes three seconds.
unexport PYTHONDONTWRITEBYTECODE

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The Python that everything but the decompiler runs on. What the decompiler supports are the classifiers in pyproject.toml;
# tools/check/check_pythons.sh reads both.
MAIN := 3.11
TORCH := torch==2.13.0
VENV := .venv
PY := $(VENV)/bin/python
# What checks the accessibility of the page, from npm; its tests are skipped where it is missing.
CHECKER := html_codesniffer@2.5.1
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
WHAT ?= --stdlib
PYTEST_ARGS ?= -n 2
DUMP := demo_dump
# What `make quick` leaves out beside slow tests: many programs, whole runs, other processes, a browser.
NOT_QUICK := $(addprefix --ignore=tests/,cli dropin integrations test_docs_run.py test_package.py decompiler/verify/test_mutants.py decompiler/verify/test_whole_modules.py decompiler/verify/test_mutated_decompilations.py \
	decompiler/test_random_programs.py decompiler/test_stdlib_runs.py decompiler/test_combinations.py decompiler/test_growth.py \
	decompiler/structure/test_random_flow.py decompiler/source/test_round_trip.py \
	$(patsubst %,dynamo/test_%.py,same_results stepping pair editors notebooks notebook_summary reproducible processes \
	interrupted faults failures breaking_frames shown_of_itself other_tools messages cost pdb_while_tracing work public_names) \
	$(patsubst %,dynamo/questions/test_%.py,expect extract compare watch trace find_nonfinite find_nonfinite_elsewhere \
	numerics_in_use answers_in_jupyter probe why) \
	$(patsubst %,dynamo/dump/test_%.py,full_code manifest missing parts_that_fail) dynamo/capture/test_call_sites.py dynamo/capture/test_memory.py dynamo/capture/test_wrappers.py dynamo/capture/test_own_lines.py dynamo/capture/test_error_stacks.py \
	dynamo/guards/test_guards_agree.py dynamo/scripts/test_script.py dynamo/store/test_directory_faults.py dynamo/hooks/test_bisector.py \
	report/read/test_log_memory.py report/read/test_side_by_side.py report/render/test_page_in_browser.py report/render/test_page_statements.py report/render/test_page_accessibility.py \
	report/render/test_page_look.py report/render/test_page_folding.py report/render/test_page_repetition.py)

.PHONY: help demo docs test slow test-decompiler quick lint types pythons sweep others random peers mutants matrix bench cost clean

help:
	@sed -n 's/^# make /make /p' Makefile

$(VENV)/bin/python:
	@python=$$(.ci/pythons $(MAIN)); \
	echo "making $(VENV) with $$python"; \
	"$$python" -m venv $(VENV)

# What an editable install copies makes it stale: the entry points.
$(VENV)/.depyf-torch: pyproject.toml | $(VENV)/bin/python
	@echo "installing depyf and $(TORCH)"
	@$(PIP) -e '.[torch]' '$(TORCH)' numpy
	@touch $@

$(VENV)/.depyf-dev: pyproject.toml $(VENV)/.depyf-torch
	@echo "installing what the tests need"
	@$(PIP) -e '.[torch,dev]' '$(TORCH)'
	@npm install --silent --no-audit --no-fund --prefix $(VENV)/npm $(CHECKER) >/dev/null 2>&1 || \
		echo "no npm, or no $(CHECKER): the page's accessibility is not checked"
	@touch $@

$(VENV)/.depyf-docs: $(VENV)/.depyf-dev
	@echo "installing what the site needs"
	@$(PIP) -e '.[docs]'
	@touch $@

# The gallery's programs are run once: `make clean` removes their pages.
docs: $(VENV)/.depyf-docs
	@$(PY) tools/site/make_gallery.py
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

demo: $(VENV)/.depyf-torch
	@rm -rf $(DUMP)
	@$(PY) -m depyf run -q -o $(DUMP) examples/branch.py
	@$(PY) examples/show_dump.py $(DUMP) mean_or_flip

test: lint types pythons
	@$(PY) -m pytest $(PYTEST_ARGS) -m "not slow"

slow: $(VENV)/.depyf-dev
	@$(PY) -m pytest $(PYTEST_ARGS) -m slow

test-decompiler: $(VENV)/.depyf-dev
	@$(PY) -m pytest $(PYTEST_ARGS) -q tests/decompiler tests/base

quick: lint
	@$(PY) -m pytest $(PYTEST_ARGS) -q -m "not slow and not inductor" $(NOT_QUICK)

lint: $(VENV)/.depyf-dev
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check

types: $(VENV)/.depyf-dev
	@$(PY) -m mypy

pythons:
	@tools/check/check_pythons.sh

sweep: $(VENV)/.depyf-dev
	@$(PY) -m depyf sweep $(WHAT)

others: $(VENV)/.depyf-dev
	@$(PY) tools/others_tests/run_others_tests.py $(ARGS)

random: $(VENV)/.depyf-dev
	@$(PY) tools/fuzz/run_random_programs.py $(ARGS)

peers: $(VENV)/.depyf-dev
	@$(PY) benchmarks/peers.py $(ARGS)

matrix: $(VENV)/.depyf-dev
	@$(PY) tools/check/run_matrix.py $(PAIRS)

bench: $(VENV)/.depyf-dev
	@$(PY) benchmarks/decompile.py
	@$(PY) benchmarks/compile_overhead.py

cost: $(VENV)/.depyf-dev
	@$(PY) benchmarks/cost.py $(ARGS)

mutants: MUTANTS ?= 5000
mutants: $(VENV)/.depyf-dev
	@$(PY) tools/fuzz/mutate_decompiled.py -n $(MUTANTS)

clean:
	rm -rf $(DUMP) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
