#!/usr/bin/env bash
# Runs tests and adds them up: scripts/run_tests.sh [c] [lua [SPEC…]]
# The last line is the total: "N passed, N failed", with ", N skipped" behind it when there are any.
# RUN_UNDER is a command to put before each program (check_san.sh uses it).
set -uo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
lua=${LUA:-lua5.4}
read -ra under <<<"${RUN_UNDER:-}"
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

run_c_test() {
	echo "… $(basename "$1")"
	"${under[@]}" "$1" 2>&1 | tee "$log"
	local status=${PIPESTATUS[0]} total
	total=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
	if [[ $total =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		[ "$status" = 0 ] || [ "${BASH_REMATCH[2]}" != 0 ] || failed=$((failed + 1))
	else
		failed=$((failed + 1))
	fi
	[ "$status" = 0 ] || echo "FAILED: $1 ended with status $status"
}

run_specs() {
	echo "… the specs, under $lua${RUN_UNDER:+, under ${under[0]}}"
	"${under[@]}" "$lua" "$(command -v busted)" "$@" 2>&1 | tee "$log"
	local status=${PIPESTATUS[0]} total
	# busted's summary: "12 successes / 0 failures / 0 errors / 1 pending : 0.5 seconds"
	total=$(grep -E '^[0-9]+ success(es)? / [0-9]+ failures? / [0-9]+ errors? / [0-9]+ pending' "$log" | tail -n 1)
	if [ -n "$total" ]; then
		local n
		read -ra n <<<"${total//[^0-9 ]/ }"
		passed=$((passed + n[0]))
		failed=$((failed + n[1] + n[2]))
		skipped=$((skipped + n[3]))
		[ "$status" = 0 ] || [ $((n[1] + n[2])) != 0 ] || failed=$((failed + 1))
	else
		failed=$((failed + 1))
	fi
	[ "$status" = 0 ] || echo "FAILED: the specs ended with status $status"
}

while [ $# -gt 0 ]; do
	case $1 in
	c)
		for source in spec/c/*_test.c; do
			[ ! -f "$source" ] || run_c_test "$build/spec/c/$(basename "$source" .c)"
		done
		shift
		;;
	lua)
		shift
		run_specs "$@"
		break
		;;
	*)
		echo "run_tests: expected c or lua, got $1" >&2
		exit 2
		;;
	esac
done

total="$passed passed, $failed failed"
[ "$skipped" = 0 ] || total="$total, $skipped skipped"
echo "$total"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
