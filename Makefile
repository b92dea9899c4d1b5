# The environment lives in .venv, everything that is built in _build. `make` alone lists the targets.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
STAMP := .venv/.stamp
AXE := _build/axe/package/axe.min.js

.DEFAULT_GOAL := help
.PHONY: help env book zip pdf epub test check stress sbom audit links lint lab full clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(STAMP) ## create or update .venv from requirements.lock

# Every file is checked against the hashes of the lock file. pip would pass over a wheel of torch in a folder that it was
# told of (find-links), because folders publish no hashes: the first line takes it, if there is one. Installing the
# project adds what only a CUDA build of torch needs, else nothing; setuptools is in the lock, so it needs no isolation.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5) and "Python 3.11.5 or newer is needed")'
	$(PYTHON) -m venv .venv
	@sed -n '/^torch==/,/[^\\]$$/p' requirements.lock | $(PIP) --no-deps --no-index --requirement /dev/stdin 2>/dev/null || true
	$(PIP) --no-deps --requirement requirements.lock
	$(PIP) --no-build-isolation --editable ".[book,test]"
	@touch $@

book: $(STAMP) ## execute the notebooks on the embedded data and build the HTML book
	$(BIN)/python book/build.py html

zip: book ## the built book as one file that opens without a server
	$(BIN)/python book/build.py zip

pdf: $(STAMP) ## the book as a PDF (needs LaTeX; without it the message names the Debian packages)
	$(BIN)/python book/build.py pdf

epub: $(STAMP) ## the book as an EPUB (needs Chromium, which typesets its formulas)
	$(BIN)/python book/build.py epub

test: lint ## lint, then all tests, every notebook included
	$(BIN)/python -m pytest

check: book $(AXE) ## open every page of the built book in a browser
	$(BIN)/python -m pytest -m book

# What the accessibility test runs in the pages. Without npm, or without the network, that test is skipped.
$(AXE):
	@mkdir -p _build/axe
	@cd _build/axe && npm pack --silent axe-core@4.14.0 && tar xzf axe-core-4.14.0.tgz || echo "no axe-core: that test is skipped"

stress: $(STAMP) ## faults, malformed input and load: print the counts and record them (a quarter of an hour)
	$(BIN)/python -m tools.stress

sbom: ## the locked packages as a CycloneDX list, into _build
	$(PYTHON) tools/sbom.py write _build/sbom.cdx.json

audit: $(STAMP) ## the locked packages: pinned, hashed, installed as locked; ADVISORIES=all.zip (OSV) is looked up offline
	$(BIN)/python tools/sbom.py audit $(ADVISORIES)

links: $(STAMP) ## ask every outside link of the book whether it is alive (needs the network)
	$(BIN)/python book/build.py links

lint: $(STAMP) ## style of sources and notebooks, types of the package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lab: $(STAMP) ## open JupyterLab on the notebooks
	$(BIN)/jupyter lab --notebook-dir notebooks

full: $(STAMP) ## rerun the paper's tables at full scale (hours; resumes where it stopped)
	$(BIN)/biohash run --all --profile full --workers $$(nproc)

clean: ## remove what was built
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean ## also remove the environment
	rm -rf .venv *.egg-info
