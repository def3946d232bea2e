#!/usr/bin/env bash
# Every static check of `make lint`. Runs them all, says which failed, and fails if any did.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
failures=()

step() { # name, command…
	local name=$1
	shift
	printf '… %s\n' "$name"
	"$@" || failures+=("$name")
}

mapfile -t c_files < <(git ls-files '*.c' '*.h')
mapfile -t c_sources < <(git ls-files 'engine/*.c')
read -ra include_flags <<<"-D_GNU_SOURCE -Iengine $(pkg-config --cflags lua5.4 libcurl libpcre2-8 sqlite3 libpq)"
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror)

with_clang() {
	clang-14 -std=c11 -fsyntax-only "${include_flags[@]}" "${warnings[@]}" "${c_sources[@]}"
}
# The way to each finding is long: it is in the log. The analyzer stays within bounds that take a second a file.
tidy() {
	local log=$build/clang-tidy.log
	printf '%s\0' "${c_sources[@]}" | xargs -0 -P "$(nproc)" -I{} \
		clang-tidy-14 --quiet {} -- -std=c11 "${include_flags[@]}" -Xclang -analyzer-config -Xclang mode=shallow \
		>"$log" 2>/dev/null && return
	grep -E '(error|warning):' "$log"
	echo "more in $log"
	return 1
}

step "C format (make format mends it)" clang-format-14 --dry-run -Werror "${c_files[@]}"
step "warnings of clang" with_clang
step "clang-tidy" tidy
step "luacheck" luacheck --quiet .
step "shell scripts parse" bash -n scripts/*.sh scripts/*/*.sh .ci/run
step "layers and opening comments" scripts/lint/sources.sh
step "exports and hardening of the module" scripts/lint/module.sh "$build/lattice/core.so"
step "docs of public functions" "${LUA:-lua5.4}" scripts/lint/docs.lua

if [ ${#failures[@]} -gt 0 ]; then
	printf 'lint: FAILED: %s\n' "${failures[@]}" >&2
	exit 1
fi
echo "lint: everything is in order"
