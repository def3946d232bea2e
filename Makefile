# Lattice: build, test, measure. `make help` lists the targets.

CC ?= gcc
PKG_CONFIG ?= pkg-config
LUA ?= lua5.4
BUILD ?= build

PKGS := lua5.4 libcurl libpcre2-8
CORE_PKGS := libcurl libpcre2-8

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
HARDEN := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fstack-clash-protection
LINK_HARDEN := -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed
OPT ?= -O2
CPPFLAGS += -D_GNU_SOURCE -Iengine $(shell $(PKG_CONFIG) --cflags $(PKGS))
CFLAGS += -std=c11 $(OPT) -g -fPIC -fvisibility=hidden -pthread $(WARN) $(if $(SANITIZE),,$(HARDEN)) $(SANITIZE)
LDFLAGS += -pthread $(LINK_HARDEN) $(SANITIZE)
CORE_LIBS = $(shell $(PKG_CONFIG) --libs $(CORE_PKGS)) -lm

CORE_SRC := $(sort $(wildcard engine/*/*.c))
BIND_SRC := $(sort $(wildcard engine/lua_*.c))
CORE_OBJ := $(CORE_SRC:%.c=$(BUILD)/%.o)
BIND_OBJ := $(BIND_SRC:%.c=$(BUILD)/%.o)
MODULE := $(BUILD)/lattice/core.so
LIB := $(BUILD)/liblattice.a

C_TESTS := $(patsubst spec/c/%.c,$(BUILD)/spec/c/%,$(sort $(wildcard spec/c/*_test.c)))

export LUA_PATH := $(CURDIR)/lua/?.lua;$(CURDIR)/lua/?/init.lua;$(CURDIR)/?.lua;;
export LUA_CPATH := $(CURDIR)/$(BUILD)/?.so;;

.PHONY: build
build: $(MODULE) ## compile the C engine

$(MODULE): $(CORE_OBJ) $(BIND_OBJ)
	@mkdir -p $(@D)
	$(CC) -shared -o $@ $^ $(LDFLAGS) $(CORE_LIBS)

$(LIB): $(CORE_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/spec/c/%_test: spec/c/%_test.c $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< $(LIB) $(LDFLAGS) $(CORE_LIBS)

.PHONY: test-c
test-c: $(C_TESTS) ## run the C unit tests
	@set -e; for t in $(C_TESTS); do $$t; done

.PHONY: test-lua
test-lua: build ## run the specs (SPEC=path picks some)
	busted --lua=/usr/bin/lua5.4 $(SPEC)

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build build-*

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | expand -t 16

-include $(CORE_OBJ:.o=.d) $(BIND_OBJ:.o=.d)
