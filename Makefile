# `make book`, `make test` and `make pdf`.  Each sets up what it needs; only Python 3.11 and make must be there.
.DEFAULT_GOAL := help
.PHONY: help book pdf test check reference chapters results mutants figure data clean
SHELL := /bin/sh
PYTHON3 ?= python3
PYTHON := .venv/bin/python
READY := .venv/ready
# CHAPTER=bound limits `make test` and `make reference` to chapters/bound.md
WORKERS := $(if $(CHAPTER),,-n 2 --dist loadfile --no-loadscope-reorder)
SUITE := $(if $(CHAPTER),chapters/$(CHAPTER).md,--whole-book)
PAGES := $(if $(CHAPTER),chapters/$(CHAPTER).md,chapters)

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20
	@echo '  CHAPTER=name        after make test or make reference: that chapter alone'
	@echo '  PACKAGE=name        after make check: the tests of lib/name'
	@echo '  BOOK_SIZE=publication  before make book: the sizes meant for print'

book: $(READY) ## build the pages into _build/html, executing the chapters whose results are not there
	@rm -f _build/html/built-from.txt
	@.venv/bin/jupyter-book build . -W --keep-going || { rm -rf _build/.doctrees; exit 1; }
	@$(PYTHON) _ext/tree.py
	@$(PYTHON) _ext/pdf.py --offer

pdf: $(READY) ## print the book, built if need be, as one PDF that its pages then offer (needs chromium)
	@$(PYTHON) _ext/pdf.py

test: $(READY) ## run the unit tests, execute every chapter and compare it with its reference
	@$(PYTHON) -m pytest $(WORKERS) $(SUITE)

check: $(READY) ## run the unit tests of what changed since the last commit, or of PACKAGE, within a minute
	@$(PYTHON) _ext/check.py $(PACKAGE)

reference: $(READY) ## execute every chapter, rewrite tests/reference and print what changed
	@$(PYTHON) -m pytest -q $(PAGES) --update-reference

chapters: $(READY) ## write every chapter as JupyterLab saves it
	@$(PYTHON) _ext/saved.py

results: $(READY) ## run every experiment at publication size into data/results (resumes with BOOK_CHUNKS=folder)
	@$(PYTHON) -m lib.experiments.published

mutants: $(READY) ## plant errors in lib and see which of them the unit tests catch (hours; goes on in FOLDER=where/it/stopped)
	@$(PYTHON) bench/mutants.py $(if $(FOLDER),--folder "$(FOLDER)") --out bench/results/mutants.txt

figure: $(READY) ## take the main figure out of the built pages, for README.md
	@$(PYTHON) _ext/front.py

data: $(READY) ## derive data/citeulike from the raw files: make data FOLDER=where/citeulike-t/is
	@test -n "$(FOLDER)" || { echo 'make data needs FOLDER, the folder of the raw citeulike-t files (see data/README.md)'; exit 2; }
	@$(PYTHON) data/derive_citeulike.py "$(FOLDER)"
	@$(PYTHON) data/derive_citeulike.py "$(FOLDER)" --topics 50

clean: ## remove what was built, keep the environment
	rm -rf _build

$(READY): requirements.txt constraints.txt
	@$(PYTHON3) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("Python 3.11 or later is needed, this is %d.%d" % v[:2])'
	@test -x $(PYTHON) || $(PYTHON3) -m venv .venv
	$(PYTHON) -m pip install --quiet --no-compile --disable-pip-version-check -r requirements.txt -c constraints.txt
	-@$(PYTHON) -m compileall -qq -j 0 .venv/lib  # pip would do it on one core; what it cannot compile, neither can this
	@$(PYTHON) -c 'import pathlib, site; pathlib.Path(site.getsitepackages()[0], "book.pth").write_text("$(CURDIR)\n")'  # import lib
	@$(PYTHON) -c 'import matplotlib.font_manager'  # its font cache, or the first chapter would report it
	@touch $@
