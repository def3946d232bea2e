# Lattice: build, test, measure. `make help` lists the targets; anything longer than a line lives in scripts/.

CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
PKG_CONFIG ?= pkg-config
LUA ?= lua5.4
BUILD ?= build
PREFIX ?= /usr/local
INST_LUADIR ?= $(PREFIX)/share/lua/5.4
INST_LIBDIR ?= $(PREFIX)/lib/lua/5.4

CORE_PKGS := libcurl libpcre2-8
# Their headers only: the libraries are loaded when a script wants them.
LOADED_PKGS := sqlite3 libpq
pkg = $(shell $(PKG_CONFIG) $(1) 2>/dev/null)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
HARDEN := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fstack-clash-protection
# nodelete: a closing Lua state must not unload code that other threads' or OpenSSL's exit handlers still need.
LINK_HARDEN := -Wl,-z,relro,-z,now,-z,noexecstack,-z,nodelete -Wl,--as-needed
OPT ?= -O2
CPPFLAGS += -D_GNU_SOURCE -Iengine $(call pkg,--cflags lua5.4 $(CORE_PKGS) $(LOADED_PKGS))
CFLAGS += -std=c11 $(OPT) -g -fPIC -fvisibility=hidden -pthread $(WARN) $(if $(SANITIZE),,$(HARDEN)) $(SANITIZE)
LDFLAGS += -pthread $(LINK_HARDEN) $(SANITIZE)
CORE_LIBS = $(call pkg,--libs $(CORE_PKGS)) -lm

CORE_SRC := $(sort $(wildcard engine/*/*.c))
BIND_SRC := $(sort $(wildcard engine/lua_*.c))
CORE_OBJ := $(CORE_SRC:%.c=$(BUILD)/%.o)
BIND_OBJ := $(BIND_SRC:%.c=$(BUILD)/%.o)
LUA_SRC := $(shell find lua -name '*.lua' 2>/dev/null)
MODULE := $(BUILD)/lattice/core.so
LIB := $(BUILD)/liblattice.a

C_TESTS := $(patsubst spec/c/%.c,$(BUILD)/spec/c/%,$(sort $(wildcard spec/c/*_test.c)))
FUZZERS := $(patsubst spec/fuzz/%.c,$(BUILD)/spec/fuzz/%,$(sort $(wildcard spec/fuzz/fuzz_*.c)))
BENCH := $(addprefix $(BUILD)/bench/,floor measure serve validate handoff search_tree mailbox_floor)

# Commands show as a word and a file; V=1 shows them whole.
Q := $(if $(V),,@)
quiet := $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
say = $(if $(V)$(quiet),,@echo "  $(1)	$(2)")

export BUILD CC LUA
export LUA_PATH := $(CURDIR)/lua/?.lua;$(CURDIR)/lua/?/init.lua;$(CURDIR)/?.lua;;
export LUA_CPATH := $(CURDIR)/$(BUILD)/?.so;;

# Sub-makes of the targets that install packages first: what pkg-config says is known only afterwards.
SUBMAKE = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

.PHONY: build
build: $(MODULE) ## compile the C engine

$(MODULE): $(CORE_OBJ) $(BIND_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $^ $(LDFLAGS) $(CORE_LIBS)

$(LIB): $(CORE_OBJ)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)ar rcs $@ $^

$(BUILD)/.tools: scripts/install_deps.sh
	@scripts/install_deps.sh --check build
	@mkdir -p $(@D) && touch $@

$(BUILD)/%.o: %.c Makefile | $(BUILD)/.tools
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# cJSON is what the tests of JSON compare with; the engine has no use for it.
$(BUILD)/spec/c/json_oracle_test $(BUILD)/spec/fuzz/fuzz_json: TEST_LIBS = $(call pkg,--libs libcjson)
$(BUILD)/spec/c/lua_json_alloc_test $(BUILD)/spec/c/lua_schema_alloc_test: $(BUILD)/engine/lua_to_value.o
$(BUILD)/spec/c/lua_json_alloc_test $(BUILD)/spec/c/lua_schema_alloc_test: TEST_LIBS = $(BUILD)/engine/lua_to_value.o $(LIB) $(call pkg,--libs lua5.4)

$(BUILD)/spec/c/%_test: spec/c/%_test.c $(LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< $(LIB) $(LDFLAGS) $(TEST_LIBS) $(CORE_LIBS)

$(BUILD)/bin/lua5.4: scripts/sanitizer/lua.c | $(BUILD)/.tools
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(LDFLAGS) $(call pkg,--libs lua5.4)

# This one has Lua and the bindings inside, and its own malloc before theirs.
WRAPPED := malloc calloc realloc free strdup strndup
$(BUILD)/spec/c/schema_alloc_test: LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=lat_arena_alloc
$(BUILD)/spec/c/http_test $(BUILD)/spec/c/search_alloc_test $(BUILD)/spec/c/workspace_alloc_test: LDFLAGS += $(WRAPPED:%=-Wl,--wrap=%)
$(BUILD)/spec/c/messages_alloc_test: LDFLAGS += $(foreach f,malloc calloc realloc,-Wl,--wrap=$(f))
$(BUILD)/spec/c/alloc_failure_test: spec/c/alloc_failure_test.c scripts/bench/reply_server.c $(BIND_OBJ) $(LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(WRAPPED:%=-Wl,--wrap=%) -o $@ $^ $(LDFLAGS) $(call pkg,--libs lua5.4) $(CORE_LIBS)

$(BUILD)/spec/fuzz/fuzz_%: spec/fuzz/fuzz_%.c $(LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer -MMD -MP -o $@ $< $(LIB) $(LDFLAGS) $(TEST_LIBS) $(CORE_LIBS)

.PHONY: install
install: build ## install for Lua 5.4 under PREFIX (/usr/local)
	@scripts/install.sh "$(DESTDIR)$(INST_LUADIR)" "$(DESTDIR)$(INST_LIBDIR)"

.PHONY: demo
demo: ## install what is missing, build, run an agent with two tools over real HTTP
	@scripts/install_deps.sh build demo
	$(SUBMAKE) build
	@scripts/demo.sh

.PHONY: test
test: ## install what is missing, build, run every spec
	@scripts/install_deps.sh build test
	$(SUBMAKE) build c-tests
	@scripts/run_tests.sh c lua

.PHONY: test-c
test-c: c-tests ## run the C tests
	@scripts/run_tests.sh c

.PHONY: test-lua
test-lua: build ## run the specs (SPEC=path picks some)
	@scripts/run_tests.sh lua $(SPEC)

.PHONY: c-tests
c-tests: $(C_TESTS)

.PHONY: check-san
check-san: ## install what is missing, run the specs under ASan+UBSan, TSan and valgrind
	@scripts/install_deps.sh build test san
	@scripts/check_san.sh

.PHONY: fuzz
fuzz: ## install what is missing, run each fuzzer for FUZZ_SECONDS (60)
	@scripts/install_deps.sh build san
	@scripts/fuzz.sh

.PHONY: fuzzers
fuzzers: $(FUZZERS)

.PHONY: bench
bench: ## install what is missing, measure beside the floor; writes build/bench.json
	@scripts/install_deps.sh build demo test bench
	$(SUBMAKE) build bench-tools
	@$(BUILD)/bench/serve $(LUA) scripts/bench/run.lua

SOAK_SECONDS ?= 600
.PHONY: soak
soak: ## 100 agents against a faulty server for SOAK_SECONDS (600): memory, descriptors and threads stay flat
	@scripts/install_deps.sh build demo test
	$(SUBMAKE) build
	@$(LUA) scripts/soak.lua $(SOAK_SECONDS)

.PHONY: bench-tools
bench-tools: $(BENCH)

$(BUILD)/bench/serve: scripts/bench/reply_server.c scripts/bench/reply_server.h
$(BUILD)/bench/validate $(BUILD)/bench/search_tree: $(LIB)
$(BUILD)/bench/transport_threads: scripts/bench/reply_server.c scripts/bench/reply_server.h $(LIB)
$(BUILD)/bench/json_arrangements $(BUILD)/bench/schema_bench: $(LIB)
$(BUILD)/bench/mailbox_floor: TEST_LIBS = $(call pkg,--libs sqlite3 libpq)
$(BUILD)/bench/%: scripts/bench/%.c Makefile | $(BUILD)/.tools
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(call pkg,--cflags libcjson) -o $@ $(filter %.c %.a,$^) $(LDFLAGS) \
		$(call pkg,--libs libcjson) $(TEST_LIBS) $(CORE_LIBS)

.PHONY: lint
lint: ## install what is missing, check style, warnings, hardening, exports and docs
	@scripts/install_deps.sh build lint
	$(SUBMAKE) build
	@scripts/lint.sh

.PHONY: format
format: ## put every C file into the house's format
	clang-format-14 -i $$(git ls-files '*.c' '*.h')

.PHONY: docs
docs: build ## write the API reference from the annotations to build/docs
	@$(LUA) scripts/make_docs.lua $(BUILD)/docs

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build build-*

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | expand -t 16

-include $(CORE_OBJ:.o=.d) $(BIND_OBJ:.o=.d) $(C_TESTS:=.d)
