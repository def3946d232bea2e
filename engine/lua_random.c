/* Binding of the kernel's random bytes: core.random_hex, core.random. The script's own math.random stays untouched:
 * ids must be unique however it is seeded. On the thread of the lua_State. */
#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

#include "lua_core.h"

enum { MOST_BYTES = 64 };

/* Up to 256 bytes are never cut short (getrandom(2)); a signal may come before the pool is ready, at boot. */
static void fill(lua_State *L, void *bytes, size_t n)
{
	ssize_t got;
	do
		got = getrandom(bytes, n, 0);
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)n)
		luaL_error(L, "the kernel gives no random bytes");
}

/* random_hex(bytes) → twice as many hex digits */
static int core_random_hex(lua_State *L)
{
	static const char DIGITS[] = "0123456789abcdef";
	unsigned char bytes[MOST_BYTES];
	char text[2 * MOST_BYTES];
	lua_Integer n = luaL_checkinteger(L, 1);
	luaL_argcheck(L, n >= 1 && n <= MOST_BYTES, 1, "expected 1 to 64 bytes");
	fill(L, bytes, (size_t)n);
	for (lua_Integer i = 0; i < n; i++) {
		text[2 * i] = DIGITS[bytes[i] >> 4];
		text[2 * i + 1] = DIGITS[bytes[i] & 15];
	}
	lua_pushlstring(L, text, 2 * (size_t)n);
	return 1;
}

/* random() → a number from 0 to below 1 */
static int core_random(lua_State *L)
{
	uint64_t bits;
	fill(L, &bits, sizeof bits);
	lua_pushnumber(L, (lua_Number)(bits >> 11) * 0x1p-53);
	return 1;
}

void lat_lua_open_random(lua_State *L)
{
	lua_pushcfunction(L, core_random_hex);
	lua_setfield(L, -2, "random_hex");
	lua_pushcfunction(L, core_random);
	lua_setfield(L, -2, "random");
}
