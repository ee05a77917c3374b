# Everything sets itself up in .venv from nothing: `make run` and `make test` are all a newcomer needs.
#
#   make run     the tour: profile real programs, simulate, map, run, compare with the forecast
#   make check   linters, types, pure tests with fewer examples: the quick loop, two minutes on two cores
#   make test    everything: `check`'s linters, all tests with all examples, the installed wheel, a real Slurm
#   make lint    linters and types alone
#   make lock    write packaging/requirements.lock and sbom.cdx.json
#   make release  sdist, wheel, wheelhouse, deb, rpm, docs, man pages, SBOM, checksums, notes of this commit, in dist/
#   make test-packages  install, upgrade, downgrade, purge deb and rpm in a fresh Debian under a real systemd: some minutes
#   make bench   benchmarks; TRACES=DIR adds real traces
VENV := .venv
BIN := $(VENV)/bin
# pilotfish is installed; the development tools are, too.
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
# Tests next to real services mostly wait: twelve workers for them, and one for each processor that computes meanwhile, see
# tests/distribution.py.
WORKERS := $(shell echo $$(($$(nproc) + 12)))
PYTEST := $(BIN)/python -m pytest --dist loadgroup --no-loadscope-reorder -q
# Runs a command such that nothing of it survives an interrupted make.
GUARDED := exec $(BIN)/python tests/guardian.py
# Each linter is a target of its own, `lint-NAME`; add it here.
LINTERS := lint-ruff lint-tree lint-spelling lint-types

.PHONY: run test test-numba check packages kernels pure coverage all-tests lint $(LINTERS) lock bench release test-packages docs clean

run: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh packaging/tour.sh

# Without .pyc files, each of the many processes of a test run would compile all modules.
unexport PYTHONDONTWRITEBYTECODE

# The kernels are compiled while the development tools are installed, and the types are checked while the tests run,
# which often wait.
test:
	@$(MAKE) --no-print-directory --output-sync=line -j 3 packages kernels $(filter-out lint-types, $(LINTERS))
	@$(MAKE) --no-print-directory -j 2 lint-types all-tests

# Two jobs at a time: the types are checked while the tests run.
check: $(READY)
	@begin=$$(date +%s); $(MAKE) --no-print-directory --output-sync -j 2 lint pure; code=$$?; \
	echo "make check took $$(($$(date +%s) - begin)) s"; exit $$code

packages:
	@sh tests/real/prepare.sh

kernels: $(INSTALLED)
	@$(GUARDED) $(BIN)/pilotfish warm

# What is in tests/real is real: not even looked at.
pure: $(READY) kernels
	@exec $(PYTEST) -n $$(nproc) -m "not real" --quick --ignore=tests/real

# Which lines the pure tests reach, in one process; kernels are compiled, and not counted.
coverage: $(READY) kernels
	@exec $(PYTEST) -n 0 -m "not real" --quick --ignore=tests/real --cov --cov-report=term:skip-covered

all-tests: $(READY)
	@$(GUARDED) $(PYTEST) -n $(WORKERS) -rs

lint: $(LINTERS)

lint-ruff: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

# Words, file names, file sizes, import circles, dead code, names of local variables.
lint-tree: $(READY)
	@$(BIN)/python -m tests.lint

lint-spelling: $(READY)
	@git ls-files -z '*.py' '*.md' '*.yaml' '*.sh' '*.service' ':!tests' | xargs -0 $(BIN)/codespell

# Where mypy keeps what it knows of a file by its content, for all checkouts: from nothing it takes 80 s.
TYPED := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pilotfish/mypy
# Folders whose modules tests import by their bare names.
HELPERS := tests:tests/contract:tests/real:tests/real/slurm:tests/real/oar:tests/real/systemd

lint-types: $(READY)
	@mkdir -p .typing && ln -sfn .. .typing/pilotfish
	@export MYPYPATH=.typing:.:$(HELPERS) MYPY_CACHE_DIR=$(TYPED); $(GUARDED) nice $(BIN)/mypy -p pilotfish -p tests

# Some minutes and a network: the oldest and the newest numba that are tested, see simulate/kernels/compile.py.
test-numba: $(READY)
	@sh tests/numba_versions.sh $(BIN)/python

# A network: what a production installation consists of, with hashes and licences. Read what has changed before you commit.
lock: $(READY)
	@sh packaging/lock.sh $(BIN)/python

bench: $(READY)
	$(BIN)/python -m benchmarks $(if $(TRACES),--traces $(TRACES))

# Of the commit that is checked out, into dist/: sdist, wheel, SBOM, notes, the docs as a site, manual pages, a wheelhouse for
# machines without a package index, and packages for Debian and for distributions with rpm, which take minutes, rpmbuild,
# strip and the package index; the same bytes each time.
release: $(READY)
	@$(BIN)/python packaging/release.py dist
	@$(BIN)/python packaging/pages.py dist
	@$(BIN)/python packaging/wheelhouse.py dist
	@$(BIN)/python packaging/packages.py dist
	@cd dist && rm SHA256SUMS && LC_ALL=C sha256sum * >.sums && mv .sums SHA256SUMS

# Root, mmdebstrap, the package archive and the package index.
test-packages: $(READY)
	@$(GUARDED) $(BIN)/python tests/real/systemd/deb_walk.py build/packages
	@$(GUARDED) $(BIN)/python tests/real/systemd/first_minutes_walk.py build/packages

docs: $(READY)
	$(BIN)/python docs/generate.py docs/reference/generated build/man
	$(BIN)/python -m sphinx -q -E -W --keep-going -n -b html -d build/doctrees docs build/docs
	@echo "the pages are in build/docs/index.html, the manual pages in build/man"

$(INSTALLED): pyproject.toml setup.py packaging/setup-venv.sh
	@sh packaging/setup-venv.sh $(VENV)
	@touch $@

$(READY): $(INSTALLED)
	@sh packaging/setup-venv.sh $(VENV) dev
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage* htmlcov
