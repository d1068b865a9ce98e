# Each target below does all of its own set-up from a bare python3.
#
#   make demo            watch RAGE finish an epic in a temporary repository
#   make demo MODEL=…    the same with a real model (a key in the environment)
#   make test            everything that CI runs
#   make lock            renew requirements/lock.txt

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MODEL ?=

.PHONY: demo test lock clean
.DELETE_ON_ERROR:

# Hashes for everything, the build backend too; then the package itself, without a download.
$(STAMP): requirements/lock.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12 …" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked dependencies into $(VENV) (a minute the first time) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/python -m host_adapters.embedded.demo $(if $(MODEL),--model "$(MODEL)")

test: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -n auto

lock:
	uv pip compile pyproject.toml --group dev --group build --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet \
	  --output-file requirements/lock.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
