# Everything starts here: `make demo` and `make test` set up what they need.
PYTHON ?= python3
BIN := .venv/bin
# Twice quiet: errors alone, no progress and no warnings about caches or root.
PIP := $(BIN)/pip --disable-pip-version-check -q -q

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast check format bench bench-engine gpu-check clean

help:  ## Say what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

KERNELS := setup.py $(wildcard kernels/native/*.cpp kernels/native/*.h)

.venv/.installed: pyproject.toml constraints.txt $(KERNELS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "plait needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing plait into .venv, about a minute"
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

.venv/.dev: .venv/.installed
	@echo "installing the tools for tests and checks"
	@$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: .venv/.installed  ## Extract JSON from documents with the default model
	@$(BIN)/plait pull smollm2
	@$(BIN)/python examples/json_extract.py

test: .venv/.dev  ## Run the whole test suite
	@$(BIN)/plait pull smollm2
	$(BIN)/pytest -q
	PLAIT_NATIVE=off $(BIN)/pytest -q -m 'not slow' tests/kernels tests/runtime/model

test-fast: .venv/.dev  ## Run the tests that need neither the model nor a second
	$(BIN)/pytest -q -m 'not slow'

check: .venv/.dev  ## Lint, format, types, layout
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/pytest -q tests/layout

format: .venv/.dev  ## Rewrite the files as ruff wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# llama.cpp is compiled for this very processor: its wheels are for older ones, and slower.
.venv/.rivals: .venv/.dev
	@echo "building llama.cpp to compare with, some minutes"
	CMAKE_ARGS=-DGGML_NATIVE=ON $(PIP) install --no-binary llama-cpp-python llama-cpp-python==0.3.36
	@touch $@

bench: .venv/.rivals  ## Run all benchmarks, llama.cpp's included, and check their goals
	@$(BIN)/plait pull smollm2
	$(BIN)/python -m benchmarks --check

bench-engine: .venv/.rivals  ## Compare the forward pass alone with llama.cpp
	@$(BIN)/plait pull smollm2
	$(BIN)/python -m benchmarks --check engine

gpu-check: .venv/.dev  ## Check the GPU's kernels and their speed, on a machine with one
	@$(BIN)/python -m benchmarks.gpu_check

clean:  ## Remove the virtual environment and the caches of the tools
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
