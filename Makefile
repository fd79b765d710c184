# `make demo` runs a kernel without a GPU; `make test` runs every check.
# Both set up .venv on first use and need only Python 3.11 or newer with pip.

.PHONY: demo test lint types unit wheel clean

VENV := .venv
BIN := $(VENV)/bin

# The first Python on the path that is new enough; PYTHON=... names another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# $(call install,EXTRA): an editable install into .venv, which is made if it is missing.
define install
	@if [ -z "$(PYTHON)" ]; then \
		echo "Phobos needs Python 3.11 or newer; 'make PYTHON=/path/to/python' names one." >&2; exit 1; fi
	@[ -x $(BIN)/python ] || { echo "Setting up $(VENV) (once) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "Installing phobos[$(1)] into $(VENV) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[$(1)]'
	@$(BIN)/python -m compileall -q phobos  # as pip does for what it copies: halves a first start
	@touch $@
endef

$(VENV)/.installed-run: pyproject.toml
	$(call install,run)

$(VENV)/.installed-dev: pyproject.toml
	$(call install,dev)
	@touch $(VENV)/.installed-run

demo: $(VENV)/.installed-run
	@$(BIN)/python tools/demo.py

test: lint types unit

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.installed-dev
	$(BIN)/pyright --pythonpath $(BIN)/python

unit: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -n auto --dist loadgroup

wheel: $(VENV)/.installed-dev
	$(BIN)/python -m build --wheel

clean:
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis $(VENV)
