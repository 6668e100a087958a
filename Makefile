# One command per job. Each sets up what it needs: a virtual environment with the PyPI packages
# that pyproject.toml names, then the C++ module, built in place so that edits count at once.
# ARGS goes to the program (make digits ARGS="--epochs 2", make test ARGS="-k softmax"), CMAKE_ARGS
# to CMake (make test BUILD=build-plain CMAKE_ARGS=-DRUSHLIGHT_ONEDNN=OFF).
PYTHON ?= python3
VENV ?= .venv
BUILD ?= build
JOBS ?= $(shell nproc)
CMAKE_ARGS ?=
AARCH64_ROOT ?= /opt/aarch64
ARGS ?=

BIN := $(VENV)/bin
EXAMPLES := digits gpt diffusion ppo graph ddp
# A sanitized module loads into an ordinary Python, so its runtime must be there first. Leaks are
# looked for in the C++ tests only: Python itself keeps memory until its end.
SANITIZED := $(BUILD)-sanitize
SANITIZER_ENV = PYTHONPATH=$(abspath $(SANITIZED)/package) \
  RUSHLIGHT_SHIM=$(abspath $(SANITIZED)/libcuda_shim.so) \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048 \
  UBSAN_OPTIONS=print_stacktrace=1 \
  LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)"

.PHONY: build $(EXAMPLES) test test-sanitize test-aarch64 lint format bench stubs docs reference \
  wheel clean
.DEFAULT_GOAL := build
export CXX

build: $(BUILD)/build.ninja
	$(BIN)/cmake --build $(BUILD) -j $(JOBS)
	$(BIN)/cmake --install $(BUILD) --prefix .

$(EXAMPLES): build
	$(BIN)/python examples/$@.py $(ARGS)

# With ARGS only what they choose runs, in one process: for a few tests that starts much faster.
# What Python compiles is kept, also where it is told not to: a quarter of a minute of each process.
test: build
	$(BIN)/cmake --build $(BUILD) -j $(JOBS) --target cuda_shim $(if $(ARGS),,core_tests)
	$(if $(ARGS),,$(BIN)/ctest --test-dir $(BUILD) --output-on-failure)
	PYTHONDONTWRITEBYTECODE= RUSHLIGHT_SHIM=$(abspath $(BUILD)/libcuda_shim.so) \
	  $(BIN)/pytest $(if $(ARGS),,-n 2 --dist worksteal) $(ARGS)

# The tests run in a copy, because the programs that they start import what lies beside them. To
# read the report of a worker that crashed, run its test with ARGS="-n 0 -s TEST".
test-sanitize: $(SANITIZED)/build.ninja
	$(BIN)/cmake --build $(SANITIZED) -j $(JOBS) --target all core_tests cuda_shim
	$(BIN)/ctest --test-dir $(SANITIZED) --output-on-failure
	rm -rf $(SANITIZED)/package
	mkdir -p $(SANITIZED)/package
	git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t $(SANITIZED)/package
	$(BIN)/cmake --install $(SANITIZED) --prefix $(SANITIZED)/package
	cd $(SANITIZED)/package && $(SANITIZER_ENV) $(abspath $(BIN))/pytest -n 2 --dist worksteal $(ARGS)

# The same for AArch64 on another processor: all but the compiler runs under QEMU, with the files of
# AARCH64_ROOT. See CONTRIBUTING.md.
test-aarch64: export QEMU_LD_PREFIX := $(AARCH64_ROOT)
test-aarch64: export CXXFLAGS := -idirafter $(AARCH64_ROOT)/usr/include
test-aarch64:
	$(MAKE) test PYTHON=$(AARCH64_ROOT)/usr/bin/python3 VENV=$(VENV)-aarch64 \
	  BUILD=$(BUILD)-aarch64 CXX=aarch64-linux-gnu-g++

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/format_cpp.py --check
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python tools/check_layers.py
	$(BIN)/python tools/check_sizes.py
	if [ -f $(BUILD)/build.ninja ]; then $(BIN)/python tools/check_isa.py $(BUILD); fi

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python tools/format_cpp.py

bench: build
	$(BIN)/python bench/run.py $(ARGS)

stubs: build
	$(BIN)/python tools/make_stubs.py
	$(BIN)/python tools/make_cpp_ops.py

docs: build
	$(BIN)/python tools/make_docs.py

reference: build
	$(BIN)/pip install --quiet pdoc
	$(BIN)/python tools/make_reference.py $(BUILD)/reference

wheel: $(VENV)/installed
	$(BIN)/pip wheel --no-deps --wheel-dir dist .

clean:
	rm -rf $(BUILD) $(SANITIZED) dist rushlight/_C*.so

# The package is installed as a path file, so that Python runs the sources here.
$(VENV)/installed: pyproject.toml tools/check_prerequisites.sh
	@sh tools/check_prerequisites.sh $(PYTHON)
	@echo "Setting up $(VENV) with the packages that pyproject.toml names"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c "import pathlib, sysconfig, tomllib; \
	  settings = tomllib.loads(pathlib.Path('pyproject.toml').read_text()); \
	  project = settings['project']; \
	  print(*settings['build-system']['requires'], *project['dependencies'], \
	        *project['optional-dependencies']['dev'], sep='\n'); \
	  pathlib.Path(sysconfig.get_path('purelib'), 'rushlight.pth').write_text(str(pathlib.Path.cwd()))" \
	  > $(VENV)/requirements.txt
	@$(BIN)/pip install --quiet --requirement $(VENV)/requirements.txt
	@touch $@

$(BUILD)/build.ninja $(SANITIZED)/build.ninja: $(VENV)/installed
	$(BIN)/cmake -S . -B $(@D) -G Ninja -DPython_EXECUTABLE=$(abspath $(BIN)/python) \
	  -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	  -DRUSHLIGHT_SANITIZE=$(if $(filter $(SANITIZED),$(@D)),ON,OFF) $(CMAKE_ARGS)
	@touch $@
