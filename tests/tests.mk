# tests.mk - what is tried, and by which programs. Included by the Makefile. What users get does not depend on it.

# --- programs ------------------------------------------------------------------------------------

# Tests that step through instructions, and those of walks and native events that are remembered: aarch64 has neither.
ifneq ($(ARCH),x86_64)
of_others     += $(addprefix tests/unit/shim/unwind/test_,every_instruction.c native_cache.c native_cache_scenes.c oracle.c) tests/unit/shim/sites/test_event_cache.c
endif
# Unit tests use the shim's parts under their own allocator: without the hooks and what starts them.
SHIM_PARTS    := $(filter-out $(OBJ)/shim/hooks/hooks_%.o $(OBJ)/shim/hooks/lifecycle.o $(OBJ)/shim/gpu/hooks_%.o,$(SHIM_OBJS))
ANALYZER_PARTS := $(filter-out $(OBJ)/analyzer/cli/main.o,$(ANALYZER_OBJS))
UNIT_SHIM     := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(filter-out $(of_others),$(wildcard tests/unit/shim/*/test_*.c))))
UNIT_ANALYZER := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/unit/analyzer/*/test_*.c)))
BENCHES       := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/bench/bench_*.c)))
# What stands above the parts, for unit tests and stress programs.
UNIT_CALLBACKS := $(OBJ)/tests/unit/shim/callbacks.o
# What qemu has not.
UNIT_KERNEL   := $(if $(CROSS),$(OBJ)/tests/aarch64/kernel.o)
# What tests, fuzzers and benches of the analyzer share: the files beside the unit tests that are none.
UNIT_SHARED   := $(call object,$(wildcard tests/unit/analyzer/*.c))
STRESS        := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/stress/*.c)))
MUTATE        := $(BUILD)/tests/mutate/mutate
# Programs with the whole shim inside, whose exports have other names there, so that a sanitizer can have the usual ones.
SANITIZED     := $(addprefix $(BUILD)/tests/sanitized/,whole ledger)
# The shim with a door in front of every call to the system, see tests/fault/faults.c.
FAULTY        := $(BUILD)/tests/fault/libkmemshim.so
FUZZERS       := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))

# Test programs: the warnings that a table of literals trips over are left out; cmocka hands each test a state that few need.
# "folder/file.h"; and the helpers of unit tests, which lie beside the folders of the tests.
SHIM_ROOMS     := -Ishim -Itests/unit/shim -Itests
ANALYZER_ROOMS := -Ianalyzer -Itests/unit/analyzer -Itests
TEST_COMPILE = $(COMPILE) -Wno-unused-parameter -Wno-conversion -Wno-missing-prototypes -Wno-shadow $(ARCH_FLAGS)

$(UNIT_SHARED): $(OBJ)/tests/%.o: tests/%.c Makefile tests/tests.mk
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(TEST_COMPILE) $(ANALYZER_ROOMS) -fPIE -c -o $@ $<

# What the unit tests try is optimised, they themselves are not: it would take longer than they run.
UNIT_OPTIMIZE = $(if $(filter tests/unit/%,$<),-O0 -g1)

# The test programs of a folder are linked once, into its program `run`; each of them is a link to that, see tests/run.c.
TESTS_OF_SHIM     := $(call object,$(filter-out $(of_others),$(wildcard tests/unit/shim/*/*.c tests/stress/*.c)))
TESTS_OF_ANALYZER := $(call object,$(wildcard tests/unit/analyzer/*/*.c))
RUNS_OF_SHIM      := $(addsuffix run,$(sort $(dir $(UNIT_SHIM) $(STRESS))))
RUNS_OF_ANALYZER  := $(addsuffix run,$(sort $(dir $(UNIT_ANALYZER))))
as_one             = -DPROGRAMS="$(patsubst %.o,PROGRAM(%),$(notdir $(filter $(TESTS_OF_SHIM) $(TESTS_OF_ANALYZER),$^)))"

$(TESTS_OF_SHIM): $(OBJ)/tests/%.o: tests/%.c Makefile tests/tests.mk
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(TEST_COMPILE) $(UNIT_OPTIMIZE) $(SHIM_ROOMS) -Dmain=$(*F)_main -fno-omit-frame-pointer -pthread -c -o $@ $<

$(UNIT_CALLBACKS) $(UNIT_KERNEL): $(OBJ)/tests/%.o: tests/%.c Makefile tests/tests.mk
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(TEST_COMPILE) $(SHIM_ROOMS) -c -o $@ $<

$(TESTS_OF_ANALYZER): $(OBJ)/tests/%.o: tests/%.c Makefile tests/tests.mk
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(TEST_COMPILE) $(UNIT_OPTIMIZE) $(ANALYZER_ROOMS) -Dmain=$(*F)_main -fPIE -c -o $@ $<

.SECONDEXPANSION:
$(RUNS_OF_SHIM): $(BUILD)/tests/%/run: tests/run.c $$(call object,$$(filter-out $(of_others),$$(wildcard tests/%/*.c))) $(UNIT_CALLBACKS) $(UNIT_KERNEL) $(SHIM_PARTS)
	$(Q)mkdir -p $(@D)
	$(call quick,LINK,$@)
	$(Q)$(TEST_COMPILE) $(as_one) -fno-lto -fno-omit-frame-pointer -pthread -MF $@.d -o $@ $^ $(SHIM_LIBS) -lcmocka $(if $(UNIT_KERNEL),-Wl$(comma)--wrap=raw_syscall)

$(RUNS_OF_ANALYZER): $(BUILD)/tests/%/run: tests/run.c $$(call object,$$(wildcard tests/%/*.c)) $(UNIT_SHARED) $(ANALYZER_PARTS)
	$(Q)mkdir -p $(@D)
	$(call quick,LINK,$@)
	$(Q)$(TEST_COMPILE) $(as_one) -MF $@.d -o $@ $^ $(ANALYZER_LIBS) -lcmocka

$(UNIT_SHIM) $(UNIT_ANALYZER) $(STRESS): $$(@D)/run
	$(Q)ln -sf run $@

# malloc is hooked_malloc, and so on: in what defines them, and in names.h for what calls them.
HOOKS := $(filter $(OBJ)/shim/hooks/hooks_% $(OBJ)/shim/gpu/hooks_%,$(SHIM_OBJS))
$(BUILD)/tests/sanitized/hooks.o: $(HOOKS)
	$(Q)mkdir -p $(@D)
	$(call quick,RENAME,$@)
	$(Q)ld -r -o $@.all $^
	$(Q)readelf -sW $@.all | awk '$$5 ~ /GLOBAL|WEAK/ && $$6 == "DEFAULT" && $$7 != "UND" { print $$8, "hooked_" $$8 }' >$@.names
	$(Q)sed 's/^/#define /' $@.names >$(@D)/names.h
	$(Q)objcopy --redefine-syms=$@.names $@.all $@

# clang's runtime lies in the program unless it is asked for as a library: only there is it behind the shim. And gcc has attributes of its own.
SANITIZED_FLAGS = $(if $(findstring clang,$(CC)),-Wno-unknown-attributes $(if $(findstring address,$(SANITIZE)),\
	-shared-libasan -Wl$(comma)-rpath$(comma)$(dir $(shell $(CC) -print-file-name=libclang_rt.asan-x86_64.so))))

vpath %.c tests/sanitized tests/preload
$(SANITIZED): $(BUILD)/tests/sanitized/%: %.c $(BUILD)/tests/sanitized/hooks.o $(filter-out $(HOOKS),$(SHIM_OBJS)) tests/sanitized/first_in_line.c
	$(call quick,$(CC),$<)
	$(Q)$(TEST_COMPILE) $(SHIM_ROOMS) -include $(@D)/names.h -fno-optimize-sibling-calls -fno-omit-frame-pointer -pthread $(SANITIZED_FLAGS) -MF $@.d -o $@ $^ $(SHIM_LIBS)

$(BENCHES) $(MUTATE): $(BUILD)/tests/%: tests/%.c $(UNIT_SHARED) $(ANALYZER_PARTS)
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(TEST_COMPILE) $(ANALYZER_ROOMS) -MF $@.d -o $@ $< $(UNIT_SHARED) $(ANALYZER_PARTS) $(ANALYZER_LIBS) -lcmocka

# Every function that faults.c can make fail; from the objects without link-time optimisation.
FAULT_WRAPS = $(shell sed -n -e 's/^WRAP.[^,]*, *\([^,]*\),.*/-Wl,--wrap=\1/p' -e 's/^[a-z]* __wrap_\([a-z_]*\).*;$$/-Wl,--wrap=\1/p' tests/fault/faults.c)
$(OBJ)/tests/fault/faults.o: tests/fault/faults.c Makefile tests/tests.mk
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(TEST_COMPILE) -Ishim $(SHIM_FLAGS) -c -o $@ $<

$(FAULTY): $(SHIM_OBJS) $(OBJ)/tests/fault/faults.o
	$(Q)mkdir -p $(@D)
	$(call quick,LINK,$@)
	$(Q)$(CC) $(OPTIMIZE) $(SHIM_FLAGS) -fno-lto $(SHIM_LINK) $(FAULT_WRAPS) -o $@ $^ $(SHIM_LIBS)

# libFuzzer, or, without it, what runs the inputs that are kept.
FUZZ_ENGINE := $(if $(findstring fuzzer,$(SANITIZE)),-fsanitize=fuzzer,tests/fuzz/replay.c)
$(FUZZERS): $(BUILD)/tests/%: tests/%.c tests/fuzz/replay.c $(UNIT_SHARED) $(ANALYZER_PARTS)
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(TEST_COMPILE) $(FUZZ_ENGINE) $(ANALYZER_ROOMS) -MF $@.d -o $@ $< $(UNIT_SHARED) $(FUZZ_SHIM) $(ANALYZER_PARTS) $(ANALYZER_LIBS)

# Recorder and reader of one format, tried together.
$(BUILD)/tests/fuzz/fuzz_line_tables: FUZZ_SHIM := $(addprefix $(OBJ)/shim/,python/python_lines.o base/raw_syscall.o base/effort.o base/clock.o base/turn.o)
$(BUILD)/tests/fuzz/fuzz_line_tables: $(addprefix $(OBJ)/shim/,python/python_lines.o base/raw_syscall.o base/effort.o base/clock.o base/turn.o)

-include $(patsubst %.o,%.d,$(UNIT_SHARED) $(UNIT_CALLBACKS) $(TESTS_OF_SHIM) $(TESTS_OF_ANALYZER))
-include $(addsuffix .d,$(RUNS_OF_SHIM) $(RUNS_OF_ANALYZER) $(FUZZERS) $(BENCHES) $(MUTATE))

# --- tests ---------------------------------------------------------------------------------------

run_each = @PLAIN_LAYOUT="$(if $(findstring thread,$(SANITIZE)),$(shell setarch -R true 2>/dev/null && echo setarch -R))" tools/run-each $(1)
# What became of each test, for tests/CASES.md.
export RAN ?= $(abspath $(BUILD))/ran.txt
PYTEST = BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) -m pytest

.PHONY: check test test-packaging test-unit test-preload test-fault test-faults test-sanitize test-python test-matrix stress-python test-bench test-cuda test-cases test-frameworks test-jupyter test-long
QUICK = quick and not framework and not long
check: ## the fast loop: lint, unit tests by gcc (golden texts are among them), and quick tests of every family of hooks; in build/dev
	@$(MAKE) BUILD=build/dev all
	@rm -f build/dev/ran.txt
	@$(MAKE) --output-sync=target BUILD=build/dev RAN=$(abspath build/dev)/ran.txt lint unit-run check-preload check-others

.PHONY: check-preload check-others
check-preload: all
	$(PYTEST) -q tests/preload -m "$(QUICK)"

check-others: all $(FAULTY)
	@$(MAKE) -C tests/cuda BUILD=$(abspath $(BUILD)) >/dev/null
	$(PYTEST) -q tests/cuda -m "$(QUICK)"
	$(PYTEST) -q tests/fault -m "$(QUICK)"
	$(PYTEST) -q tests/python -m "$(QUICK)"
	$(PYTEST) -q tests/test_check_cases.py tests/test_orders.py tests/test_docs.py tests/test_deploy.py

# What is timed runs alone. The rest shares the processors, three more at a time than there are: whole programs often wait. The longest come
# first, and what can be built by several processors at once last: so all end at about the same time.
LONGEST_FIRST = test-preload-e-h test-python test-preload-i-p test-preload-a-d test-preload-q-z deaths-once test-sanitized unit-gcc test-fault test-bench lint
test: ## unit, whole-program, sanitizer, Python and device tests; what is shipped: make test-packaging
	@$(MAKE) deps
	@$(MAKE) all $(MUTATE) $(FAULTY)
	@rm -f $(RAN)
	@$(MAKE) bench-promises
	@$(MAKE) --jobs=$$(($(JOBS) + 3)) --keep-going --output-sync=target $(LONGEST_FIRST)
	@$(MAKE) test-cases

# Each has a folder of its own: they are built side by side.
# The processor that Debian has a cross compiler, libraries and an emulator for. What fails under qemu, and why: tests/aarch64/known.txt
.PHONY: test-aarch64 units-under-qemu
test-aarch64: ## the same for aarch64: built by a cross compiler, tests run under qemu (Debian: tools/install-deps aarch64; about 10 minutes)
	@tools/install-deps build test aarch64
	@$(MAKE) CROSS=aarch64-linux-gnu- LTO= all units-under-qemu
	@$(PYTEST) -q tests/aarch64

units-under-qemu: $(UNIT_SHIM) $(UNIT_ANALYZER)
	@tests/aarch64/run-units $(SYSROOT) tests/aarch64/known.txt $^

# To optimise the checks of both sanitizers takes clang longer than the tests of the analyzer save by it. The shim is optimised: where it
# reads what may be gone without the sanitizer, it counts on a copy being no call.
.PHONY: unit-gcc unit-clang unit-asan stress-tsan
unit-gcc:
	@$(MAKE) CC=gcc BUILD=$(BUILD) unit-run

unit-clang:
	@$(MAKE) CC=clang BUILD=$(BUILD)/clang all unit-run

unit-asan:
	@$(MAKE) CC=clang BUILD=$(BUILD)/asan SANITIZE=address,undefined OPTIMIZE="-O1 -g1" ANALYZER_OPTIMIZE=-O0 unit-run fuzz-replay sanitized

stress-tsan:
	@$(MAKE) CC=gcc BUILD=$(BUILD)/tsan SANITIZE=thread OPTIMIZE="-O1 -g1" stress-run sanitized

test-unit: unit-gcc unit-clang ## unit tests (cmocka), built by gcc and by clang

test-sanitize: unit-asan stress-tsan ## unit tests under address and undefined, stress tests under thread sanitizer; builds the whole shim under each for test-preload

# For `make test`: parts by name, and what needs programs with sanitizers.
PRELOAD_PARTS := test-preload-a-d test-preload-e-h test-preload-i-p test-preload-q-z
.PHONY: $(PRELOAD_PARTS) test-sanitized
test-preload: all $(MUTATE) ## whole programs with and without the shim, and what the reports say
	$(PYTEST) tests/preload -m "not framework and not long"

$(PRELOAD_PARTS): test-preload-%:
	$(PYTEST) $(filter-out %/test_sanitized.py,$(wildcard tests/preload/test_[$*]*.py)) -m "not framework and not long"

test-sanitized: unit-asan stress-tsan
	$(PYTEST) tests/preload/test_sanitized.py

test-fault: all $(FAULTY) ## disks, limits, rights and system calls that fail: the program goes on
	$(PYTEST) tests/fault

test-faults: all $(FAULTY) ## every call to the system fails once, of every example; 83 minutes on two busy cores (FAULT_STRIDE=1)
	FAULT_STRIDE=$(or $(FAULT_STRIDE),1) $(PYTEST) tests/fault/test_faults.py

test-python: all ## interpreters and their frames: those that are there (see tools/interpreters), by name
	$(PYTEST) tests/python -m "not framework and not long"

test-matrix: all ## brings interpreters into build/, then all of them x all cases x all allocators; a million frames each, and more
	tools/interpreters
	MATRIX=full EVENTS=60000 $(PYTEST) tests/python -m "not framework"

stress-python: all ## CPython's own tests with a walk at every malloc, for each interpreter that has them
	BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) tests/python/stress.py

test-long: all ## what takes long and seldom finds what a shorter test does not; some of it with frameworks from PyPI
	@$(MAKE) unit-clang
	@$(MAKE) wheel
	@$(MAKE) deb
	$(PYTEST) tests/preload tests/python tests/packaging -m long
	@$(MAKE) fuzz FUZZ_SECONDS=60

test-bench: ## that the benchmark's own figures and verdicts are right
	$(PYTEST) tests/bench tests/gates

test-cuda: all ## device hooks over a driver double; no device and no CUDA package needed
	$(MAKE) -C tests/cuda BUILD=$(abspath $(BUILD)) test

.PHONY: gpu-check
gpu-check: all ## for a machine with an NVIDIA GPU: are the sums those of CUDA, PyTorch, JAX and CuPy (PYTHON= one that has them); at most 6 minutes
	$(PYTHON) tests/cuda/gpu_check.py --build $(abspath $(BUILD))

test-cases: ## that every case of tests/CASES.md and every order of tests/stress/ORDERS.md names a test that ran (EXPECT=--all: those with frameworks too)
	$(PYTEST) -q tests/test_check_cases.py tests/test_orders.py tests/test_lint.py tests/test_docs.py tests/test_deploy.py
	$(PYTHON) tests/check_cases.py tests/CASES.md $(RAN) $(EXPECT)
	$(PYTHON) tests/stress/orders.py check $(RAN)

.PHONY: small-objects
small-objects: all ## programs that grow by small Python objects, killed at 80 %: is the culprit first; ESTIMATES=20: so often, are its bytes right (NAMES= some; RESULTS=1 writes the table)
	BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) tests/python/$(if $(ESTIMATES),small_objects_estimates.py --times $(ESTIMATES),small_objects.py) \
		$(if $(RESULTS),--results) $(NAMES)

# It uses what test-cuda builds.
.PHONY: deaths-once
deaths-once: test-cuda
	$(PYTEST) tests/deaths tests/leaks

.PHONY: test-deaths
test-deaths: all ## staged deaths, with kmemshim run and with LD_PRELOAD alone: is the cause right, and the line (NAMES= some; REPEAT=5)
	$(MAKE) -C tests/cuda BUILD=$(abspath $(BUILD))
	BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) tests/deaths/deaths.py --repeat $(or $(REPEAT),5) --verbose $(NAMES)

.PHONY: test-leaks
test-leaks: all ## leaks and controls of many kinds: is each found on its right line and how soon, is no other called one (NAMES= some; WRITE=1 also asks memray, tracemalloc and a trend test, and writes tests/leaks/RESULTS.md)
	BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) tests/leaks/leakset.py $(if $(WRITE),--write --memray $$(BUILD=$(abspath $(BUILD)) tools/venv memray)) $(NAMES)

test-packaging: all ## the wheel, installed into a fresh environment, used, removed, and made twice; the Debian packages, unpacked and used
	@$(MAKE) wheel
	@$(MAKE) deb
	$(PYTEST) tests/packaging -m "not long"

.PHONY: real-programs peers-tests
real-programs: all ## real programs with and without the shim (NAMES= some), writes tests/real/RESULTS.md; installs what is missing
	@tools/install-deps test
	BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) tests/real/real_programs.py $(NAMES)

peers-tests: all ## heaptrack's and memray's own test programs: HEAPTRACK=, MEMRAY= folders of their sources; adds to RESULTS.md
	BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) tests/real/peers_tests.py $(if $(HEAPTRACK),--heaptrack $(HEAPTRACK)) \
		$(if $(MEMRAY),--memray $(MEMRAY))

test-frameworks: all ## PyTorch, Keras on TensorFlow, JAX and CUDA's runtimes from PyPI, in build/venv-*
	@tools/install-deps consumers
	$(PYTEST) tests/preload/test_export_consumers.py
	$(PYTEST) tests/preload -m "framework and not long"
	$(PYTEST) tests/python -m framework
	$(MAKE) -C tests/cuda BUILD=$(abspath $(BUILD))
	$(PYTEST) tests/cuda -m framework

test-jupyter: all ## JupyterLab, Notebook 7, nbclient and papermill from PyPI, with a real browser; pictures in build/jupyter
	@tools/install-deps notebook
	BUILD_DIR=$(abspath $(BUILD)) $$(BUILD=$(abspath $(BUILD)) tools/venv notebook) -m pytest tests/jupyter

.PHONY: soak kills library-kills
soak: all ## threads, children, libraries and exec'ed functions come and go for SECONDS=, twice: nothing is lost, nothing of ours grows
	SECONDS=$(SECONDS) $(PYTEST) tests/preload/test_soak.py -s

kills: all ## KILLS= deaths of an allocator test and as many of a PyTorch loop, at random instants: each capture is right
	KILLS=$(KILLS) $(PYTEST) tests/preload/test_kills.py -s

library-kills: all ## LIBRARY_KILLS=10 deaths in two ways each of polars, DuckDB, Arrow and pandas, between 600 and 900 MiB: the line that holds comes first
	LIBRARY_KILLS=$(or $(LIBRARY_KILLS),10) $(PYTEST) tests/preload/test_libraries.py -k a_kill -s

.PHONY: unit-run stress-run fuzz-run fuzz-replay sanitized
sanitized: $(SANITIZED)

unit-run: $(UNIT_SHIM) $(UNIT_ANALYZER)
	$(call run_each,$^)

stress-run: $(STRESS)
	$(call run_each,$^)

.PHONY: golden
golden: $(BUILD)/tests/unit/analyzer/report/test_render $(BUILD)/tests/unit/analyzer/cli/test_situations $(BUILD)/tests/unit/analyzer/diff/test_diff $(BUILD)/tests/unit/analyzer/top/test_top_golden ## writes the agreed texts of tests/golden anew: look at the difference, it is what users read
	@for program in $^; do UPDATE_GOLDEN=1 $$program >/dev/null 2>&1 || exit 1; done
	@git --no-pager diff --stat tests/golden

.PHONY: weaken
weaken: ## every release and acquire weakened, one by one: does its test report it (WORDS= of some rows of tests/stress/ORDERS.md)
	$(PYTHON) tests/stress/orders.py weaken $(WORDS)

.PHONY: test-thresholds
test-thresholds: ## every threshold of leak classes, verdict and refusals changed, one by one: does a unit test fail (WORDS= of some names or files)
	$(PYTHON) tests/mutate/thresholds.py $(WORDS)

.PHONY: mutate
mutate: all $(MUTATE) ## every byte of two captures damaged, one after the other: right, or told
	MUTATE_EVERY=1 $(PYTEST) tests/preload/test_mutation.py -s

.PHONY: fuzz
fuzz: all ## captures, diffs, top, cores, configurations, baselines, looks, texts, line tables: FUZZ_SECONDS= each; 5 s, 512 MiB an input (clang)
	@$(PYTHON) tests/fuzz/make_core.py $(BUILD) $(BUILD)/fuzz/core
	@$(MAKE) CC=clang BUILD=$(BUILD)/fuzz SANITIZE=address,undefined,fuzzer-no-link fuzz-run

fuzz-replay: $(FUZZERS)
	@for program in $^; do \
		corpus=$(BUILD)/corpus/$${program##*/}; mkdir -p $$corpus; \
		$$program --write-seeds $$corpus && \
		$$program $$corpus tests/fuzz/corpus/$${program##*/} 2>$$program.log || { tail -n 40 $$program.log; exit 1; }; \
	done

fuzz-run: $(FUZZERS)
	@for program in $^; do \
		corpus=$(BUILD)/corpus/$${program##*/}; mkdir -p $$corpus; \
		$$program --write-seeds $$corpus && \
		FUZZ_CORE=$(BUILD)/core ASAN_OPTIONS=quarantine_size_mb=32 \
			$$program -max_total_time=$(FUZZ_SECONDS) -timeout=5 -rss_limit_mb=512 -print_final_stats=1 \
			-artifact_prefix=$$corpus- $$corpus tests/fuzz/corpus/$${program##*/} || exit 1; \
	done

.PHONY: bench bench-ab bench-cliffs bench-promises gates
bench: all ## what recording costs beside the other recorders: table and JSON (BENCH= options of tests/bench/bench.py)
	BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) tests/bench/bench.py $(BENCH)

gates: all ## fails when recording has become dearer than tests/gates/base.txt says: instructions, calls to the system, CPU time beside its commit (WRITE=1 writes it; GATES= options of tests/gates/gates.py)
	@tools/install-deps gates
	@for name in torch keras pandas; do BUILD=$(abspath $(BUILD)) tools/venv $$name >/dev/null || exit 1; done
	BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) tests/gates/gates.py $(if $(WRITE),--write) $(GATES)

bench-ab: all ## BASE=REV: CPU time of real programs, plain, with that commit's library and with this one, in turns (BENCH="--programs torch-mlp --times 5")
	BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) tests/gates/gates.py --only ab --plain $(if $(BASE),--base $(BASE)) $(BENCH)

bench-cliffs: all ## what an event costs within and beyond fixed sizes: the lines of tests/bench/CLIFFS.md (CLIFFS="stacks --rounds 3")
	BUILD_DIR=$(abspath $(BUILD)) $(PYTHON) tests/bench/cliffs.py $(CLIFFS)

bench-promises: $(BENCHES) ## what the analyzer promises about its own speed and size
	$(call run_each,$^)
