# kmemshim: one preload library, one command.
#
#   make                build/libkmemshim.so and build/kmemshim
#   make dev            the same in build/dev, quickly built: for work on the source
#   make demo           install what is missing, build, kill a training script, print the report
#   make check          the fast loop: lint, unit tests and quick whole-program tests
#   make test           everything that needs no network but Debian's packages
#   make help           all targets and the variables that change them

# --- what a user may set -------------------------------------------------------------------------

CC        ?= gcc
ifeq ($(origin CC),default)
CC        := gcc
endif
CROSS     ?=#                  of a compiler for another processor: aarch64-linux-gnu- (Debian: gcc-aarch64-linux-gnu, and tools/sysroot aarch64)
BUILD     ?= build$(addprefix /,$(firstword $(subst -, ,$(CROSS))))
PREFIX    ?= /usr/local
DESTDIR   ?=
WERROR    ?= 1
OPTIMIZE  ?= $(if $(filter %/dev,$(BUILD)),-O1 -g,-O2 -g)
SANITIZE  ?=#                  address,undefined or thread; for tests and the analyzer
JOBS      ?= $(shell nproc)
BENCH     ?=#                  options of make bench, e.g. "--quick --workloads pairs"
PYTHON    ?= /usr/bin/python3# with pytest, jsonschema, fastjsonschema (Debian: python3-...)
FRAMEWORK ?= numpy#            of the demo: numpy, keras, torch
SEED      ?=#                  of the tests that pick moments at random; printed when not given
FUZZ_SECONDS ?= 60#            of each fuzz target

SECONDS   ?= 3600#             of make soak
KILLS     ?= 1000#             of make kills

V         ?= 0#                of 1: show whole commands

# The processor that is built for: see shim/base/arch.h.
ifneq ($(CROSS),)
SYSROOT   ?= $(shell tools/sysroot $(firstword $(subst -, ,$(CROSS))))
override CC := $(CROSS)gcc --sysroot=$(SYSROOT)
endif
ARCH      := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

export CC PYTHON SEED
MAKEFLAGS += --no-print-directory $(if $(filter 0,$(MAKELEVEL)),--jobs=$(JOBS))
.DELETE_ON_ERROR:
comma := ,
Q     := $(if $(filter 1,$(V)),,@)
quick  = $(if $(Q),@echo '  $(1) $(2)')
.SECONDARY:

# --- flags: one variable per concern -------------------------------------------------------------

WARNINGS  := -Wall -Wextra -Wshadow -Wundef -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
# A switch over an enumeration has a case for each of its values: who adds one is told of every place.
WARNINGS  += -Werror=switch
WARNINGS  += $(if $(filter 1,$(WERROR)),-Werror)
LANGUAGE  := -std=gnu11 -D_GNU_SOURCE
# The thread sanitizer knows nothing of fences: what they are for is in tests/stress/ORDERS.md.
SANITIZER := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all $(if $(filter thread,$(SANITIZE)),-Wno-tsan) \
	$(if $(findstring address,$(SANITIZE)),-D__SANITIZE_ADDRESS__=1)) # which clang 14 does not say by itself
COMPILE   = $(CC) $(LANGUAGE) $(OPTIMIZE) $(WARNINGS) $(SANITIZER) -Iinclude -MMD -MP $(CPPFLAGS) $(CFLAGS)

# The same bytes from another folder: debug information names sources from here on.
ANY_FOLDER     := -ffile-prefix-map=$(CURDIR)=.

ARCH_FLAGS     := $(if $(filter x86_64,$(ARCH)),-mcx16)

# The shim lives in somebody else's process: hidden symbols, thread-local storage that needs no loader
# call, frame pointers so that its own frames are cheap to step over, cmpxchg16b for the peak words.
SHIM_FLAGS     := -fPIC -fvisibility=hidden -fno-omit-frame-pointer -fno-optimize-sibling-calls -ftls-model=initial-exec $(ARCH_FLAGS) -pthread $(ANY_FOLDER)
SHIM_LINK      := -shared -Wl,-soname,libkmemshim.so -Wl,-z,now -Wl,-z,relro -Wl,-z,defs -Wl,--as-needed -Wl,--version-script,shim/versions.map
# An event crosses a dozen small functions of several files: the library is optimised as a whole. Objects hold both forms, for
# the unit tests are linked from them as they are.
LTO            := $(if $(SANITIZE)$(filter %/dev,$(BUILD)),,$(if $(findstring gcc,$(notdir $(firstword $(CC)))),-O3 -fno-tree-slp-vectorize -flto=auto -ffat-lto-objects))
# libunwind is opened when the shim is loaded, see shim/unwind/unwind_libunwind.c: its headers are needed here.
SHIM_LIBS      :=

ANALYZER_PKGS  := libdw libelf jansson yaml-0.1 libprotobuf-c zlib ncursesw
ANALYZER_FLAGS := -fPIE $(ARCH_FLAGS) $(ANY_FOLDER) $(shell pkg-config --cflags $(ANALYZER_PKGS) 2>/dev/null)
# Drawn with it, in the page itself (Debian: libjs-d3).
D3             := /usr/share/javascript/d3/d3.min.js
ANALYZER_FLAGS += -DPAGE_D3=\"$(D3)\"
ANALYZER_LIBS  := $(or $(shell pkg-config --libs $(ANALYZER_PKGS) 2>/dev/null),-ldw -lelf -ljansson -lyaml -lprotobuf-c -lz -lncursesw -ltinfo) -liberty -lm

# --- what is built -------------------------------------------------------------------------------

OBJ           := $(BUILD)/obj
object         = $(addprefix $(OBJ)/,$(addsuffix .o,$(basename $(1))))

# A file NAME_PROCESSOR.c is for that processor, and takes the place of NAME.c, if there is one.
of_processors := $(foreach arch,x86_64 aarch64,$(wildcard shim/*/*_$(arch).c analyzer/*/*_$(arch).c tests/unit/shim/*/*_$(arch).c))
of_this_one   := $(filter %_$(ARCH).c,$(of_processors))
of_others     := $(filter-out $(of_this_one),$(of_processors)) $(of_this_one:_$(ARCH).c=.c)
# Tests that step through instructions, and those of walks and native events that are remembered: aarch64 has neither.
ifneq ($(ARCH),x86_64)
of_others     += $(addprefix tests/unit/shim/unwind/test_,every_instruction.c native_cache.c native_cache_scenes.c oracle.c) tests/unit/shim/sites/test_event_cache.c
endif
SHIM_SRCS     := $(sort $(filter-out $(of_others),$(wildcard shim/*/*.c)))
SHIM_OBJS     := $(call object,$(SHIM_SRCS))
# Unit tests use the shim's parts under their own allocator: without the hooks and what starts them.
SHIM_PARTS    := $(filter-out $(OBJ)/shim/hooks/hooks_%.o $(OBJ)/shim/hooks/lifecycle.o $(OBJ)/shim/gpu/hooks_%.o,$(SHIM_OBJS))

ANALYZER_SRCS := $(sort $(filter-out $(of_others),$(wildcard analyzer/*/*.c)))
ANALYZER_OBJS := $(call object,$(ANALYZER_SRCS)) $(OBJ)/made/pprof.pb-c.o
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

.PHONY: all
all: $(BUILD)/libkmemshim.so $(BUILD)/kmemshim ## the shim and the command (default)

# For work on the source. `make BUILD=build/dev test-preload` and the like then use it. Its times are not those of what users get.
.PHONY: dev
dev: ## the same in build/dev, without whole-program optimisation: one changed file is rebuilt in a second
	@$(MAKE) BUILD=build/dev all

# Linked beside the target and renamed: a program that has the old shim mapped keeps it.
$(BUILD)/libkmemshim.so: $(SHIM_OBJS) shim/versions.map
	$(call quick,LINK,$@)
	$(Q)$(CC) $(OPTIMIZE) $(SHIM_FLAGS) $(LTO) $(SHIM_LINK) $(LDFLAGS) -o $@.new $(SHIM_OBJS) $(SHIM_LIBS)
	$(Q)mv -f $@.new $@

$(BUILD)/kmemshim: $(ANALYZER_OBJS)
	$(call quick,LINK,$@)
	$(Q)$(CC) $(OPTIMIZE) $(SANITIZER) -pie -Wl,--as-needed $(LDFLAGS) -o $@.new $^ $(ANALYZER_LIBS)
	$(Q)mv -f $@.new $@

$(OBJ)/shim/%.o: shim/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(COMPILE) -Ishim $(SHIM_FLAGS) $(LTO) -c -o $@ $<

# Its assembly calls functions by name.
$(addprefix $(OBJ)/shim/,gpu/hooks_lookup.o hooks/hooks_new.o hooks/hooks_thread.o) $(filter %_$(ARCH).o,$(SHIM_OBJS)): LTO :=

# Reader and writer of pprof's messages. Made by protoc-c, which is not held to our warnings.
$(OBJ)/made/%.pb-c.c $(OBJ)/made/%.pb-c.h &: analyzer/export/%.proto
	$(Q)mkdir -p $(@D)
	$(call quick,PROTOC,$<)
	$(Q)protoc-c --proto_path=$(<D) --c_out=$(@D) $<

$(OBJ)/made/%.o: $(OBJ)/made/%.c Makefile
	$(call quick,$(CC),$<)
	$(Q)$(CC) $(LANGUAGE) $(OPTIMIZE) $(SANITIZER) -MMD -MP $(CPPFLAGS) $(CFLAGS) $(ANALYZER_FLAGS) -c -o $@ $<

$(OBJ)/analyzer/export/export_pprof.o: ANALYZER_FLAGS += -I$(OBJ)/made
$(OBJ)/analyzer/export/export_pprof.o: $(OBJ)/made/pprof.pb-c.h

$(OBJ)/analyzer/jupyter/kernels.o: analyzer/jupyter/kernels.py
$(OBJ)/analyzer/page/page.o: $(wildcard analyzer/page/*.css analyzer/page/*.js analyzer/page/*.license) $(D3)
$(OBJ)/analyzer/%.o: analyzer/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(COMPILE) -Ianalyzer $(ANALYZER_FLAGS) $(ANALYZER_OPTIMIZE) -c -o $@ $<

# Test programs: the warnings that a table of literals trips over are left out; cmocka hands each test a state that few need.
# "folder/file.h"; and the helpers of unit tests, which lie beside the folders of the tests.
SHIM_ROOMS     := -Ishim -Itests/unit/shim -Itests
ANALYZER_ROOMS := -Ianalyzer -Itests/unit/analyzer -Itests
TEST_COMPILE = $(COMPILE) -Wno-unused-parameter -Wno-conversion -Wno-missing-prototypes -Wno-shadow $(ARCH_FLAGS)

$(UNIT_SHARED): $(OBJ)/tests/%.o: tests/%.c Makefile
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

$(TESTS_OF_SHIM): $(OBJ)/tests/%.o: tests/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(TEST_COMPILE) $(UNIT_OPTIMIZE) $(SHIM_ROOMS) -Dmain=$(*F)_main -fno-omit-frame-pointer -pthread -c -o $@ $<

$(UNIT_CALLBACKS) $(UNIT_KERNEL): $(OBJ)/tests/%.o: tests/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(TEST_COMPILE) $(SHIM_ROOMS) -c -o $@ $<

$(TESTS_OF_ANALYZER): $(OBJ)/tests/%.o: tests/%.c Makefile
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
$(OBJ)/tests/fault/faults.o: tests/fault/faults.c Makefile
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

-include $(patsubst %.o,%.d,$(SHIM_OBJS) $(ANALYZER_OBJS) $(UNIT_SHARED) $(UNIT_CALLBACKS) $(TESTS_OF_SHIM) $(TESTS_OF_ANALYZER))
-include $(addsuffix .d,$(RUNS_OF_SHIM) $(RUNS_OF_ANALYZER) $(FUZZERS) $(BENCHES) $(MUTATE))

# --- dependencies and the demo -------------------------------------------------------------------

.PHONY: deps demo
deps: ## install the Debian packages that building and testing need
	@tools/install-deps build demo test wheel deb

demo: ## kill a training script for memory and name the line (FRAMEWORK=numpy|keras|torch)
	@tools/install-deps build demo
	@$(MAKE) all
	@BUILD=$(BUILD) tools/demo $(FRAMEWORK)

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

# --- tidiness ------------------------------------------------------------------------------------

.PHONY: lint tidy format clean
lint: ## which folder includes which, circles, headers that compile alone, format
	@tools/lint

# TIDY= some files. One process a file: clang-tidy 14 forgets what va_start() is after the first one.
TIDY ?= $(SHIM_SRCS) $(ANALYZER_SRCS)
tidy_side = printf '%s\n' $(filter $(1)/%.c,$(TIDY)) | xargs -r -n 1 -P $(JOBS) sh -c 'clang-tidy --quiet "$$@" -- $(LANGUAGE) -Iinclude -I$(1) $(2)' tidy
tidy: $(OBJ)/made/pprof.pb-c.h ## clang-tidy with the checks of .clang-tidy, each finding an error (TIDY= some files)
	@tools/install-deps tidy
	$(Q)$(call tidy_side,shim,-mcx16 -pthread)
	$(Q)$(call tidy_side,analyzer,$(ANALYZER_FLAGS) -I$(OBJ)/made)

format: ## clang-format all C and C++ files; lint holds it
	clang-format -i $(shell find include shim analyzer examples tests -name '*.[ch]' -o -name '*.cc')

clean: ## remove what was built; private Python environments stay (rm -r build removes all)
	rm -rf $(OBJ) $(BUILD)/tests $(BUILD)/dev $(BUILD)/clang $(BUILD)/asan $(BUILD)/tsan $(BUILD)/fuzz
	rm -rf $(BUILD)/libkmemshim.so $(BUILD)/kmemshim $(BUILD)/wheel $(BUILD)/dist

# --- installation --------------------------------------------------------------------------------

.PHONY: install uninstall
LIBDIR  ?= lib
VERSION := $(shell sed -n 's/.*VERSION_TEXT "\(.*\)"/\1/p' include/version.h)
PKG_CONFIG_FILE = $(DESTDIR)$(PREFIX)/share/pkgconfig/kmemshim.pc
CMAKE_FOLDER = $(DESTDIR)$(PREFIX)/share/cmake/kmemshim
WITH_VERSION = sed 's/@VERSION@/$(VERSION)/'
MANUAL = $(DESTDIR)$(PREFIX)/share/man/man1/kmemshim.1
COMMAND ?= $(BUILD)/kmemshim
COMPLETION_BASH = $(DESTDIR)$(PREFIX)/share/bash-completion/completions/kmemshim
COMPLETION_ZSH = $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_kmemshim
COMPLETION_FISH = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/kmemshim.fish
SCHEMAS = $(DESTDIR)$(PREFIX)/share/kmemshim
DOCUMENTS = $(MANUAL) $(COMPLETION_BASH) $(COMPLETION_ZSH) $(COMPLETION_FISH)
install: all ## PREFIX=/usr/local DESTDIR= LIBDIR=lib
	install -D -m 755 $(COMMAND) $(DESTDIR)$(PREFIX)/bin/kmemshim
	install -D -m 755 $(BUILD)/libkmemshim.so $(DESTDIR)$(PREFIX)/$(LIBDIR)/libkmemshim.so
	install -D -m 644 include/kmemshim.h $(DESTDIR)$(PREFIX)/include/kmemshim.h
	install -d $(DESTDIR)$(PREFIX)/share/kmemshim/python/kmemshim $(dir $(DOCUMENTS)) $(dir $(PKG_CONFIG_FILE)) $(CMAKE_FOLDER)
	$(foreach kind,report diff doctor holders lost,$(COMMAND) schema $(kind) >$(SCHEMAS)/$(kind).schema.json && ) true
	$(COMMAND) manual >$(MANUAL)
	$(COMMAND) completion bash >$(COMPLETION_BASH)
	$(COMMAND) completion zsh >$(COMPLETION_ZSH)
	$(COMMAND) completion fish >$(COMPLETION_FISH)
	$(WITH_VERSION) packaging/kmemshim.pc >$(PKG_CONFIG_FILE)
	$(WITH_VERSION) packaging/cmake/kmemshim-config-version.cmake >$(CMAKE_FOLDER)/kmemshim-config-version.cmake
	install -m 644 packaging/cmake/kmemshim-config.cmake examples/ci/ctest/Kmemshim.cmake $(CMAKE_FOLDER)
	chmod 644 $(DOCUMENTS) $(SCHEMAS)/*.json $(PKG_CONFIG_FILE) $(CMAKE_FOLDER)/*
	install -m 644 python/kmemshim/*.py $(DESTDIR)$(PREFIX)/share/kmemshim/python/kmemshim

uninstall: ## removes exactly what install put there
	rm -f $(DESTDIR)$(PREFIX)/bin/kmemshim $(DESTDIR)$(PREFIX)/$(LIBDIR)/libkmemshim.so $(DESTDIR)$(PREFIX)/include/kmemshim.h
	rm -f $(DOCUMENTS) $(PKG_CONFIG_FILE)
	rm -rf $(CMAKE_FOLDER) $(DESTDIR)$(PREFIX)/share/kmemshim

# --- packages ------------------------------------------------------------------------------------

# The command of a wheel asks for nothing but glibc: what else it uses is linked into it. See packaging/README.md.
WHEEL       := $(BUILD)/wheel
STATIC_LIBS  = $(filter-out -pthread -lpthread -ldl,$(shell pkg-config --static --libs $(ANALYZER_PKGS))) -liberty
DATE         = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),$(shell stat -c %Y include/version.h))

# And for a glibc before that of this machine: packaging/wheel/older has what that one lacks. The library is there a second time, for
# it needs libdl and libpthread then: two more files at the start of each program.
OLDER       := $(WHEEL)/older
OLDER_LIBS  := $(OLDER)/libdl.so.2 $(OLDER)/libpthread.so.0

$(OLDER)/%.o: packaging/wheel/older/%.c Makefile
	$(Q)mkdir -p $(@D)
	$(call quick,$(CC),$<)
	$(Q)$(COMPILE) -fPIC $(ANY_FOLDER) -c -o $@ $<

$(OLDER)/stubs: packaging/wheel/older/make-stubs
	$(Q)packaging/wheel/older/make-stubs $(@D)
	$(Q)touch $@

$(WHEEL)/kmemshim: $(ANALYZER_OBJS) $(OLDER)/command.o | $(OLDER)/stubs
	$(Q)mkdir -p $(@D)
	$(call quick,LINK,$@)
	$(Q)$(CC) $(OPTIMIZE) $(SANITIZER) -pie -Wl,--as-needed -Wl,--trace $(LDFLAGS) -Wl,--wrap=__libc_start_main -o $@.new $^ \
		-Wl,-Bstatic $(STATIC_LIBS) -Wl,-Bdynamic $(OLDER_LIBS) -lm >$@.inputs
	$(Q)mv -f $@.new $@

$(OLDER)/libkmemshim.so: $(SHIM_OBJS) $(OLDER)/library.o shim/versions.map | $(OLDER)/stubs
	$(call quick,LINK,$@)
	$(Q)$(CC) $(OPTIMIZE) $(SHIM_FLAGS) $(LTO) $(SHIM_LINK) $(LDFLAGS) -o $@.new $(SHIM_OBJS) $(OLDER)/library.o \
		-Wl,--no-as-needed $(OLDER_LIBS) -Wl,--as-needed $(SHIM_LIBS)
	$(Q)mv -f $@.new $@

.PHONY: wheel
wheel: ## a Python wheel in build/dist, with the command and the library inside: needs glibc alone, no compiler
	@tools/install-deps build wheel
	@$(MAKE) all $(WHEEL)/kmemshim $(OLDER)/libkmemshim.so
	@rm -rf $(WHEEL)/tree
	@$(MAKE) install COMMAND=$(WHEEL)/kmemshim DESTDIR= PREFIX=$(WHEEL)/tree/kmemshim/native >$(WHEEL)/install.log
	@install -D -m 755 $(OLDER)/libkmemshim.so $(WHEEL)/tree/kmemshim/native/lib/older-glibc/libkmemshim.so
	@SOURCE_DATE_EPOCH=$(DATE) packaging/wheel/make-wheel $(WHEEL) $(BUILD)/dist

.PHONY: deb
deb: $(filter wheel,$(MAKECMDGOALS)) # one after the other: both build, and install what is missing
deb: ## Debian packages in build/dist: the command and the library; the header; the Python package (MAINTAINER="Name <address>")
	@tools/install-deps build deb
	@$(MAKE) all
	@env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL packaging/make-deb $(abspath $(BUILD)) $(VERSION) $(if $(MAINTAINER),"$(MAINTAINER)")

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@awk '/^[A-Z_]+ +\?=/ { sub(/#  */, "# "); print "  " $$0 }' $(firstword $(MAKEFILE_LIST))
