#!/usr/bin/env bash
# Looks at the built module: exports luaopen_* only, and carries its hardening. scripts/lint/module.sh FILE
set -uo pipefail
module=$1
bad=0
complain() {
	echo "$module: $1" >&2
	bad=1
}

[ -f "$module" ] || { complain "is not built"; exit 1; }

others=$(nm -D --defined-only "$module" | awk '{print $NF}' | grep -v '^luaopen_' || true)
[ -z "$others" ] || complain "exports more than luaopen_*: $(echo $others)"
nm -D --defined-only "$module" | grep -q ' luaopen_lattice_core$' || complain "does not export luaopen_lattice_core"

headers=$(readelf -W -l -d "$module")
grep -q 'GNU_RELRO' <<<"$headers" || complain "has no RELRO"
grep -Eq 'BIND_NOW|FLAGS.*NOW' <<<"$headers" || complain "is not bound at load time (-z now)"
grep -Eq 'GNU_STACK.* RW +0x' <<<"$headers" || complain "has an executable stack"
! grep -q 'TEXTREL' <<<"$headers" || complain "has text relocations"
! grep -Eq 'RPATH|RUNPATH' <<<"$headers" || complain "carries a library path"
symbols=$(nm -D --undefined-only "$module")
grep -q '__stack_chk_fail' <<<"$symbols" || complain "has no stack protector"
grep -q '_chk@' <<<"$symbols" || complain "was built without _FORTIFY_SOURCE"

exit $bad
