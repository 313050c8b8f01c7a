# The two commands are `make conform` and `make test`; the work is done by toolchains/setup, harness/execmem-cts, ci/lint,
# pytest and bats, which can all be called by hand.
PYTHON ?= /usr/bin/python3
JOBS ?= 2
# Further options of `execmem-cts run`, for instance: make conform ARGS='--port NAME --only po_fault_address'
ARGS ?=
# What `make fuzz` calls (ref/fuzz/run --help), and how often.
TARGET ?= api
CALLS ?= 10000000

export PYTHON
export EXECMEM_PYTHON ?= $(PYTHON)
export PYTHONDONTWRITEBYTECODE = 1

.DEFAULT_GOAL := help
# Each part uses JOBS processes by itself.
.NOTPARALLEL:
.PHONY: help conform test test-full bench fuzz lint format presets faults pytest bats setup setup-test clean

help: ## say what there is (the default)
	@echo "Usage: make TARGET"
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1 - \2/p' Makefile | awk -F ' - ' '{ printf "%-12s %s\n", $$1, $$2 }'
	@echo
	@echo "Variables: JOBS ($(JOBS)), PYTHON ($(PYTHON)), ARGS (more options for execmem-cts run)"
	@echo "EXECMEM_NO_INSTALL=1 keeps 'make conform' and 'make test' from installing packages."

conform: setup ## install what is missing, build every port, run the conformance profile, print the matrix
	@harness/execmem-cts run --profile conform --jobs $(JOBS) $(ARGS)

test: setup-test ## install what is missing, then: lint, pytest, bats, the conformance run, planted faults
	@$(MAKE) --no-print-directory --keep-going lint pytest bats faults

test-full: ## test, with each planted fault on every port that it can be planted on, a Slurm array, and 100 times as much fuzzing
	@EXECMEM_FULL=1 EXECMEM_FUZZ_CALLS=100000000 EXECMEM_FUZZ_JOBS=$(JOBS) $(MAKE) --no-print-directory test FAULTS=--full

bench: ## measure the library natively against what it replaces, and results in large numbers; a goal that is missed is an error
	@ref/bench/run
	@harness/bench/results

fuzz: ## make CALLS calls of a part of the library, TARGET, chosen by a fuzzer, against its model
	@ref/fuzz/run --target $(TARGET) --calls $(CALLS) --jobs $(JOBS)

lint: ## formatters and linters, as CI runs them
	@ci/lint --jobs $(JOBS)

pytest: ## the harness's tests
	@$(PYTHON) -m pytest -q -n $(JOBS) --dist loadgroup harness/tests

bats: ## the command-line tests
	@printf '%s\n' harness/bats/*.bats | xargs -P $(JOBS) -I '{}' \
		bash -c 'text="$$(bats --tap "{}" 2>&1)"; status=$$?; printf "%s\n" "# {}" "$$text"; exit $$status'

faults: ## the conformance run, then the planted faults: each must turn exactly its requirements red
	@harness/execmem-cts faults --jobs $(JOBS) $(FAULTS)

format: ## rewrite C, shell and Python in the project's format
	@ci/format

presets: ## write CMakePresets.json from the ports
	@toolchains/presets

setup:
	@toolchains/setup --for conform

setup-test:
	@toolchains/setup --for test

clean: ## remove build/
	rm -rf build
