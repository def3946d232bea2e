#!/usr/bin/env bash
# The tests under ASan+UBSan, TSan and valgrind, each from a build folder of its own; then every allocation
# failed in turn. Arguments pick some: scripts/check_san.sh [asan] [tsan] [valgrind] [alloc]
# Property tests run fewer rounds here (LATTICE_SPEC_SCALE), of every kind.
set -uo pipefail
cd "$(dirname "$0")/.."
make=(make --no-print-directory -s "-j$(nproc)")
passed=0 failed=0

suite() { # name, command…
	local name=$1
	shift
	echo "=== $name"
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "check-san: FAILED: $name"
	fi
}

# A sanitizer's report in any process of a run (the model server's too) is a failure, whatever the exit status.
reports_in() { # folder
	local found
	found=$(find "$1" -maxdepth 1 -name 'report.*' -size +0)
	[ -z "$found" ] || { cat $found; return 1; }
}

# `lua5.4` is a launcher that is built with the sanitizer too: for the specs, and for whatever they start.
run_sanitized() { # build folder, flags of the compiler, command before each program, make target
	local options=(BUILD="$1" OPT=-O1 SANITIZE="$2")
	rm -f "$1"/report.*
	"${make[@]}" "${options[@]}" build c-tests "$1/bin/lua5.4" || return 1
	PATH=$PWD/$1/bin:$PATH RUN_UNDER=$3 "${make[@]}" "${options[@]}" "$4"
	local status=$?
	reports_in "$1" && return $status
}

run_asan() { # make target
	local log=log_path=$PWD/build-asan/report
	# one spec preloads a library of its own, with faults in it, before ASan's
	ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:verify_asan_link_order=0:$log UBSAN_OPTIONS=print_stacktrace=1:$log \
		LATTICE_SPEC_SCALE=0.1 ALLOC_FAILURE_STRIDE=31 run_sanitized build-asan \
		"-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer" "" "$1"
}

# TSan wants the address layout that it knows: no randomisation. It takes the clone that starts a program (which shares
# memory until exec) for a fork with threads and would end this process at its next thread: not with die_after_fork=0.
run_tsan() { # make target
	TSAN_OPTIONS=die_after_fork=0:ignore_noninstrumented_modules=1:second_deadlock_stack=1:log_path=$PWD/build-tsan/report \
		LATTICE_SPEC_SCALE=0.05 ALLOC_FAILURE_STRIDE=211 SPEC=${TSAN_SPECS-} \
		run_sanitized build-tsan -fsanitize=thread "setarch -R" "$1"
}

# valgrind makes vfork a fork, so that a child that can't start has no way to say why: that spec is left to the others.
# Its warnings about system calls that it doesn't know (pidfd_open) are no findings. Patterns run in PCRE2's interpreter: the
# code that its JIT makes reads whole words, past the ends of strings. Commands of a model are left to ASan and TSan: what
# they count (descriptors, children) valgrind adds to; HTTP/2 over its slow clock opens more connections.
run_valgrind() { # make target
	local valgrind=(valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite
		--show-leak-kinds=definite --keep-debuginfo=yes --num-callers=25
		--suppressions="$PWD/scripts/sanitizer/valgrind.supp")
	local options=(BUILD=build-valgrind SANITIZE=-DLAT_NO_JIT)
	local left=process.that.can.t.start.says.why
	left="--filter-out=$left --filter-out=says.what.could.not.be.started --filter-out=speaks.HTTP/2"
	left="$left --exclude-pattern=builtin_bash"
	"${make[@]}" "${options[@]}" build c-tests || return 1
	LATTICE_SPEC_SCALE=0.01 SPEC="${VALGRIND_SPECS-} $left" \
		RUN_UNDER="${valgrind[*]}" "${make[@]}" "${options[@]}" "$1" 2>&1 | sed -u 's/--[0-9]*-- .*//; /^$/d'
}

run_alloc() {
	"${make[@]}" build c-tests || return 1
	ALLOC_FAILURE_STRIDE=1 build/spec/c/alloc_failure_test
}

[ $# -gt 0 ] || set -- asan tsan valgrind alloc
for what in "$@"; do
	case $what in
	asan)
		suite "C tests under ASan and UBSan" run_asan test-c
		suite "specs under ASan and UBSan" run_asan test-lua
		;;
	tsan)
		suite "C tests under TSan" run_tsan test-c
		suite "specs under TSan" run_tsan test-lua
		;;
	valgrind)
		suite "specs under valgrind" run_valgrind test-lua
		;;
	alloc)
		suite "every allocation failed in turn" run_alloc
		;;
	*)
		echo "check_san: expected asan, tsan, valgrind or alloc, got $what" >&2
		exit 2
		;;
	esac
done
echo "check-san: $passed passed, $failed failed"
[ $failed = 0 ]
