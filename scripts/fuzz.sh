#!/usr/bin/env bash
# Builds every fuzzer and runs each for FUZZ_SECONDS, two at a time. Arguments pick some: scripts/fuzz.sh json sse
# Seeds: spec/fuzz/corpus/<module> and the shared cases; what a run finds is kept in build-fuzz/corpus/<module>.
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
out=build-fuzz
make --no-print-directory -s -j"$(nproc)" BUILD=$out CC=clang OPT=-O1 \
	SANITIZE="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all" fuzzers || exit 1

shared_cases() { # module → folders with more seeds
	case $1 in
	json*) echo ../shared/cases/json-parsing ;;
	schema*) echo ../shared/cases/json-schema ;;
	esac
}

run_one() {
	local module=$1 found=$out/corpus/$1 log=$out/$1.log seeds=()
	mkdir -p "$found" "$out/crashes"
	for folder in spec/fuzz/corpus/"$module" $(shared_cases "$module"); do
		[ ! -d "$folder" ] || seeds+=("$folder")
	done
	if "$out/spec/fuzz/fuzz_$module" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
		-artifact_prefix="$out/crashes/$module-" "$found" "${seeds[@]}" >"$log" 2>&1; then
		echo "fuzz_$module: clean, $(grep -oE '^Done [0-9]+ runs in [0-9]+ second' "$log" | tail -n 1)s"
	else
		tail -n 40 "$log"
		echo "fuzz_$module: FAILED; its input is in $out/crashes, its log is $log"
		return 1
	fi
}

modules=("$@")
if [ ${#modules[@]} = 0 ]; then
	for source in spec/fuzz/fuzz_*.c; do
		[ ! -f "$source" ] || modules+=("$(basename "$source" .c | sed 's/^fuzz_//')")
	done
fi
echo "… fuzzing ${modules[*]-nothing}, $seconds s each, two at a time"

passed=0 failed=0
wait_for_one() {
	if wait -n; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}
running=0
for module in "${modules[@]}"; do
	if [ $running = 2 ]; then
		wait_for_one
		running=1
	fi
	run_one "$module" &
	running=$((running + 1))
done
while [ $running -gt 0 ]; do
	wait_for_one
	running=$((running - 1))
done
echo "fuzz: $passed passed, $failed failed"
[ $failed = 0 ]
