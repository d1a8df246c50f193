# Everything a developer does, by name. `make help` lists it.
PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
VENV := .venv
BIN := $(VENV)/bin
BUILD := build/cmake
SOURCES := CMakeLists.txt pyproject.toml $(shell find csrc torch_tpu -name '*.cc' -o -name '*.h' -o -name '*.py' -o -name '*.pyi')
CXX_FILES := $(shell find csrc -name '*.cc' -o -name '*.h')
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
PIP := $(BIN)/python -m pip install -q
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-cpp test-python lint format bench docs clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

setup: $(VENV)/built ## make .venv with the package built and installed, and what examples and tests need

# torch comes first and alone, so that nothing else decides its version.
$(VENV)/requirements: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "Python 3.11 to 3.13 is needed, $(PYTHON) is %d.%d: make setup PYTHON=python3.11" % v)'
	@command -v $${CXX:-c++} >/dev/null || { echo 'a C++20 compiler is needed (Debian: apt-get install g++)'; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) torch==2.13.0
	$(PIP) $$($(BIN)/python -c 'import tomllib; t = tomllib.load(open("pyproject.toml", "rb")); print(*[r.replace(" ", "") for r in t["build-system"]["requires"] + t["project"]["dependencies"]])')
	$(PIP) --group dev
	@touch $@

$(VENV)/built: $(VENV)/requirements $(SOURCES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation --no-deps --force-reinstall -Cbuild-dir=$(BUILD) .
	@touch $@

demo: setup ## train a small ResNet on handwritten digits on device tpu
	$(BIN)/python examples/digits.py --device tpu $(ARGS)

test: test-cpp test-python ## all tests, C++ and Python

test-cpp: setup
	@test -e /usr/include/gtest/gtest.h || test -e /usr/local/include/gtest/gtest.h || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y -q libgtest-dev >/dev/null; } || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q >/dev/null && apt-get install -y -q libgtest-dev >/dev/null; } || \
	  { echo 'GoogleTest is needed for the C++ tests (Debian: apt-get install libgtest-dev)'; exit 1; }
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B $(BUILD) -DTORCH_TPU_TESTS=ON >/dev/null
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build $(BUILD) --target core_tests
	. $(BIN)/activate && $(BUILD)/core_tests --gtest_brief=1

test-python: setup
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile tests $(ARGS)

lint: $(VENV)/requirements ## ruff, mypy, clang-format
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)

format: $(VENV)/requirements ## rewrite the C++ and Python sources in the project's format
	$(BIN)/clang-format -i $(CXX_FILES)
	$(BIN)/ruff check --fix .

bench: setup ## speed, as ratios measured in one run (TORCH_TPU_PEER_ENV=env.sh adds the peer's column)
	$(BIN)/python benchmarks/run.py $(ARGS)

docs: setup ## the manual, in docs/_build/html
	$(PIP) --group docs
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build/html

clean: ## remove what was built
	rm -rf build docs/_build examples/out $(VENV)
