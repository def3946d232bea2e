/* Schemas in Lua with each allocation failed in turn, the engine's and Lua's own: an error or the right result,
 * and nothing leaks (the leak check of a sanitizer looks at the end; the blocks of this test are counted
 * too). The sources are included behind malloc that fails. */
#include "failing_alloc.h"

#include "../../engine/base/buf.c"
#include "../../engine/base/value.c"
#include "../../engine/lua_schema.c"
#include "../../engine/lua_value.c"

#include <lualib.h>
#include <stdio.h>

static int passed, failed;

static void check(bool ok, const char *what, int line)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("lua_schema_alloc_test.c:%d: not so: %s\n", line, what);
}

#define CHECK(condition) check(condition, #condition, __LINE__)

static const char SCRIPT[] =
	"local core = ...\n"
	"local text = '{\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"^[a-z ]+[0-9]*$\"},'\n"
	"  .. '\"d\":{\"default\":{\"k\":[1,2]}},\"l\":{\"items\":{\"$ref\":\"n\"},\"uniqueItems\":true}}}'\n"
	"local schema = assert(core.schema_compile(text, { n = '{\"type\":\"integer\"}' }, { format_assertion = true }))\n"
	"assert(schema:json() == text)\n"
	"local list = {}\n"
	"for i = 1, 40 do list[i] = i end\n"
	"local ok, value = schema:validate { a = 'text', l = list }\n"
	"assert(ok and value.d.k[2] == 2 and value.l[40] == 40)\n"
	"local valid, again = schema:validate_json '{\"a\":\"x\",\"l\":[1,2.0]}'\n"
	"assert(valid and again.l[2] == 2)\n"
	"list[41], list[42] = 'x', 7\n"
	"local wrong, errors = schema:validate { a = 'A', l = list }\n"
	"assert(not wrong and #errors == 3)\n"
	"assert(#select(2, schema:validate { print }) == 1)\n"
	"assert(#select(2, schema:validate_json '[') == 1)\n"
	"assert(not core.schema_compile '{' and not core.schema_compile '{\"type\":1}')\n";

/* Lua collects and tries again when an allocation fails; only when that fails too it raises. */
static bool fails_for_good, used_up;

static void *lua_alloc(void *data, void *block, size_t old_size, size_t size)
{
	(void)data, (void)old_size;
	if (size == 0) {
		free(block);
		return NULL;
	}
	/* Lua takes it for granted that a block can shrink. */
	if (block && size <= old_size)
		return block;
	void *moved = used_up ? NULL : realloc(block, size);
	used_up = !moved && fails_for_good;
	return moved;
}

static int run_script(lua_State *L)
{
	if (luaL_loadstring(L, SCRIPT) != LUA_OK)
		return lua_error(L);
	lua_newtable(L);
	lat_lua_value_setup(L);
	lat_lua_push_array_mt(L);
	lua_setfield(L, -2, "array_mt");
	lat_lua_open_schema(L);
	lua_call(L, 1, 0);
	return 0;
}

/* Whether the script ended before its n-th allocation failed. */
static bool runs(long n)
{
	lua_State *L = lua_newstate(lua_alloc, NULL);
	CHECK(L != NULL);
	if (!L)
		return false;
	luaL_openlibs(L);
	lua_pushcfunction(L, run_script);
	allocs_left = n;
	int status = lua_pcall(L, 0, 0, 0);
	bool ran_out = allocs_left >= 0; /* the script ended before */
	allocs_left = -1;
	used_up = false;
	bool memory = status != LUA_OK && strstr(lua_tostring(L, -1), "memory");
	CHECK(status == LUA_OK || memory);
	if (status != LUA_OK && !memory)
		printf("%s\n", lua_tostring(L, -1));
	lua_close(L);
	return ran_out;
}

static void each_allocation_in_turn(bool for_good)
{
	fails_for_good = for_good;
	long n = 0;
	while (n < 100000 && !runs(n))
		n++;
	CHECK(n > 100);
}

int main(void)
{
	each_allocation_in_turn(false);
	each_allocation_in_turn(true);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
