# Every target sets itself up on a fresh machine: Python 3.11 or newer, pip and make are all that is needed
# (the lab also needs root on Debian 12, and installs its own Debian packages).
PYTHON ?= python3
LANES ?= fast train lab
PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help demo demo-offline test test-deep check lab-up lab-down clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1|/' | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

demo: .venv/.core ## three real nodes from a Git repository, drift, healing, a Git change (root, Debian 12)
	@$(PY) -m demo.run

demo-offline: .venv/.core ## plans from recorded nodes: no root, no network, any Linux or macOS
	@$(PY) -m demo.offline

test: .venv/.dev ## all lanes, with coverage; LANES=fast: what needs no lab
	@$(PY) -m tools.lanes $(LANES)

test-deep: .venv/.dev ## long matrices, then every script of acceptance/
	@$(PY) -m tools.lanes deep acceptance

check: .venv/.dev ## format, lint, types, who imports whom, Python 3.6 on nodes, sizes and habits
	@$(PY) -m tools.check

lab-up: .venv/.core ## boot the lab's nodes and leave them up
	@$(PY) -m lab up

lab-down: .venv/.core ## end the lab and leave nothing of it
	@$(PY) -m lab down

clean: ## remove what make made here; the lab's caches stay
	@rm -rf .venv .demo build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=...")'
	@echo "preparing .venv ..."
	@test -x $(PY) || $(PYTHON) -m venv .venv
	@$(PY) -m pip install -qq --disable-pip-version-check -e .
	@touch $@

.venv/.dev: .venv/.core
	@echo "preparing .venv for development ..."
	@$(PY) -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@
