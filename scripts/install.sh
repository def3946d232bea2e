#!/usr/bin/env bash
# Copies the built module and the Lua files: scripts/install.sh LUADIR LIBDIR (BUILD names the build folder).
set -euo pipefail
cd "$(dirname "$0")/.."
lua_dir=$1 lib_dir=$2
find lua -name '*.lua' -printf '%P\n' | while read -r file; do
	install -D -m 644 "lua/$file" "$lua_dir/$file"
done
install -D -m 755 "${BUILD:-build}/lattice/core.so" "$lib_dir/lattice/core.so"
echo "installed into $lua_dir and $lib_dir"
