# Everything sets itself up in .venv from nothing: `make run` and `make test` are all a newcomer needs.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Most of the time tests wait for real services: four at once also where there are fewer CPUs.
WORKERS := $(shell n=$$(nproc); echo $$((n < 4 ? 4 : n)))

.PHONY: run test lint bench clean

run: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tour.sh

test: $(READY) lint
	@sh tests/real/prepare.sh
	@$(BIN)/python -m pilotfish.simulate.kernels
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -q -rs

lint: $(READY)
	$(BIN)/ruff check .
	@mkdir -p .typing && ln -sfn .. .typing/pilotfish
	MYPYPATH=.typing $(BIN)/mypy -p pilotfish

bench: $(READY)
	$(BIN)/python -m tests.benchmarks $(if $(TRACES),--traces $(TRACES))

$(READY): pyproject.toml setup-venv.sh
	@sh setup-venv.sh $(VENV)
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info
