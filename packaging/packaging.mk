# packaging.mk - the wheel and the Debian packages. Included by the Makefile.

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
