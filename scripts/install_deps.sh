#!/usr/bin/env bash
# Finds what is missing by asking for it, and installs the Debian packages that bring it; nothing else.
#   scripts/install_deps.sh [--check] GROUP…      groups: build demo test lint san bench rocks
# With --check it only says what is missing. Nothing missing: no output, no root needed.
set -euo pipefail
cd "$(dirname "$0")/.."

check_only=
if [ "${1:-}" = --check ]; then
	check_only=yes
	shift
fi

missing=()  # what is missing, for people
packages=() # what brings it

lacks() { # what, package
	missing+=("$1 (Debian package $2)")
	case " ${packages[*]-} " in *" $2 "*) ;; *) packages+=("$2") ;; esac
}
need_command() { # command, package
	command -v "$1" >/dev/null 2>&1 || lacks "command $1" "$2"
}
need_library() { # pkg-config name, package
	pkg-config --exists "$1" 2>/dev/null || lacks "headers of $1" "$2"
}
need_lua_module() { # module, package
	lua5.4 -e "require '$1'" >/dev/null 2>&1 || lacks "Lua 5.4 module $1" "$2"
}
need_file() { # what it is, glob of places, package
	compgen -G "$2" >/dev/null || lacks "$1" "$3"
}

need_group() {
	case $1 in
	build)
		need_command gcc gcc
		need_file "C library headers" "/usr/include/stdio.h" libc6-dev
		need_command make make
		need_command pkg-config pkg-config
		need_command lua5.4 lua5.4
		need_library lua5.4 liblua5.4-dev
		need_library libcurl libcurl4-openssl-dev
		need_library libpcre2-8 libpcre2-dev
		need_library sqlite3 libsqlite3-dev # headers, and the libraries that are loaded when a script wants them
		need_library libpq libpq-dev
		;;
	demo) # what the bundled model server runs on
		need_command lua5.4 lua5.4
		need_lua_module cqueues lua-cqueues
		need_lua_module openssl lua-luaossl
		need_file "certificates of public authorities" "/etc/ssl/certs/ca-certificates.crt" ca-certificates
		;;
	test)
		need_group demo
		need_lua_module busted.core lua-busted
		need_command busted lua-busted
		need_lua_module socket lua-socket
		need_lua_module zlib lua-zlib # gzip in the model server
		need_command nghttpx nghttp2-proxy
		need_command openssl openssl
		need_command git git         # Glob is compared with it
		need_command rg ripgrep      # Grep is compared with it
		need_library libcjson libcjson-dev # JSON is compared with it
		need_file "PostgreSQL server" "/usr/lib/postgresql/*/bin/initdb" postgresql # specs start one of their own
		;;
	lint)
		need_command clang-format-14 clang-format-14
		need_command clang-14 clang-14
		need_command clang-tidy-14 clang-tidy-14
		need_command luacheck lua-check
		need_command readelf binutils
		;;
	valgrind)
		need_command valgrind valgrind
		need_file "libc's debug symbols, which valgrind needs" "/usr/lib/debug/.build-id/*/*.debug" libc6-dbg
		;;
	san) # sanitizers, fuzzers, valgrind
		need_command clang clang
		need_file "clang's sanitizer runtime" "/usr/lib/llvm-14/lib/clang/14*/lib/linux/libclang_rt.fuzzer-*" \
			libclang-rt-14-dev
		need_command valgrind valgrind
		need_library libcjson libcjson-dev # for fuzz_json
		need_file "libc's debug symbols, which valgrind needs" "/usr/lib/debug/.build-id/*/*.debug" libc6-dbg
		;;
	rocks)
		need_command luarocks luarocks
		;;
	bench)
		need_group demo
		need_lua_module socket lua-socket
		need_file "PostgreSQL server" "/usr/lib/postgresql/*/bin/initdb" postgresql
		need_library libcjson libcjson-dev
		need_group valgrind
		need_command rg ripgrep
		;;
	*)
		echo "install_deps: no group '$1'; there are: build demo test lint san bench rocks" >&2
		exit 2
		;;
	esac
}

[ $# -gt 0 ] || set -- build
for group in "$@"; do need_group "$group"; done
[ ${#missing[@]} -gt 0 ] || exit 0

printf 'missing: %s\n' "${missing[@]}"
if [ -n "$check_only" ]; then
	echo "to install it: scripts/install_deps.sh $*"
	exit 1
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
	if command -v sudo >/dev/null 2>&1; then
		as_root=(sudo)
	else
		echo "This needs root, and there is no sudo. As root, run:" >&2
		echo "  apt-get update && apt-get install -y --no-install-recommends ${packages[*]}" >&2
		exit 1
	fi
fi
if ! command -v apt-get >/dev/null 2>&1; then
	echo "No apt-get here. Install what is listed above by your system's own means; then run make again." >&2
	exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run_apt() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@" >>"$log" 2>&1
}
echo "… reading package lists (apt-get update)"
run_apt update || echo "  that failed; trying with the lists that are here"
echo "… installing ${packages[*]}"
if ! run_apt install -y --no-install-recommends "${packages[@]}"; then
	tail -n 15 "$log" >&2
	echo "apt-get could not install ${packages[*]}; the lines above say why." >&2
	exit 1
fi
echo "… installed"
