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
SHIM_SRCS     := $(sort $(filter-out $(of_others),$(wildcard shim/*/*.c)))
SHIM_OBJS     := $(call object,$(SHIM_SRCS))

ANALYZER_SRCS := $(sort $(filter-out $(of_others),$(wildcard analyzer/*/*.c)))
ANALYZER_OBJS := $(call object,$(ANALYZER_SRCS)) $(OBJ)/made/pprof.pb-c.o

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

-include $(patsubst %.o,%.d,$(SHIM_OBJS) $(ANALYZER_OBJS))

# --- dependencies and the demo -------------------------------------------------------------------

.PHONY: deps demo
deps: ## install the Debian packages that building and testing need
	@tools/install-deps build demo test wheel deb

demo: ## kill a training script for memory and name the line (FRAMEWORK=numpy|keras|torch)
	@tools/install-deps build demo
	@$(MAKE) all
	@BUILD=$(BUILD) tools/demo $(FRAMEWORK)

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

RULES := Makefile packaging/packaging.mk tests/tests.mk
include $(wordlist 2,3,$(RULES))

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(RULES)
	@echo
	@awk '/^[A-Z_]+ +\?=/ { sub(/#  */, "# "); print "  " $$0 }' $(RULES)
