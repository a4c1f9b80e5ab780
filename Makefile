# The commands a person uses. Each sets up what it needs in .venv; `make help` lists them.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test setup format lint types contracts unit bench frameworks clean

help:  ## list these commands
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/base  ## watch a training run go wrong, and what is sent about it (under a minute)
	$(BIN)/wtwin-watch demo $(ARGS)

test: format lint types contracts unit bench  ## everything that must be green

setup: .venv/dev  ## make .venv with the program and all that its development needs

format: .venv/dev
	$(BIN)/ruff format --check .

lint: .venv/dev  ## ruff
	$(BIN)/ruff check .

types: .venv/dev  ## mypy, strict
	$(BIN)/mypy

contracts: .venv/dev  ## who may import whom
	$(BIN)/lint-imports

unit: .venv/dev  ## the test suite
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

bench: .venv/dev  ## the quick benchmarks
	$(BIN)/python -m benchmarks.daemon --quick
	$(BIN)/python -m benchmarks.sources --quick
	$(BIN)/python -m benchmarks.delivery --quick
	$(BIN)/python -m benchmarks.crash --quick
	$(BIN)/python -m benchmarks.detection --quick --only simulated
	$(BIN)/python -m benchmarks.fortnight --quick
	$(BIN)/python -m benchmarks.published --quick
	$(BIN)/python -m benchmarks.loop --quick

frameworks: .venv/frameworks  ## add the training frameworks, for the tests of their callbacks (1 GB, or several)

clean:  ## remove .venv and caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage*

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("wtwin-watch needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv .venv

.venv/base: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing wtwin-watch into .venv (the first time this takes one to two minutes)"
	@$(PIP) --editable .
	@touch $@

.venv/dev: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing wtwin-watch and its development tools into .venv (the first time this takes minutes)"
	@$(PIP) --editable '.[all,dev]'
	@touch $@ .venv/base

.venv/frameworks: .venv/dev
	@echo "installing torch, transformers and lightning into .venv (this takes minutes)"
	@$(PIP) --editable '.[lightning,transformers]'
	@touch $@
