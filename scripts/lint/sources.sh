#!/usr/bin/env bash
# What the files of the repository must and must not say: opening comments, layers, paths of one machine.
set -uo pipefail
cd "$(dirname "$0")/../.."
bad=0

complain() { # message, then lines that show it (nothing to show: no complaint)
	[ -n "$2" ] || return 0
	printf '%s:\n%s\n' "$1" "$2" >&2
	bad=1
}

mapfile -t engine_c < <(git ls-files 'engine/*.c')
mapfile -t core < <(git ls-files 'engine/*/*')
mapfile -t pure < <(git ls-files engine/base engine/json engine/schema engine/messages)

no_comment=$(for file in "${engine_c[@]}"; do
	head -c 2 "$file" | grep -q '^/\*' || echo "$file"
done)
complain "an engine file opens with a comment: what it is, what it owns, which thread, who frees" "$no_comment"

complain "the core includes no Lua header" \
	"$(grep -nE '#[[:space:]]*include.*(lua\.h|lauxlib\.h|lualib\.h|lua_)' "${core[@]}")"
complain "base, json, schema and messages know no socket and no thread" \
	"$(grep -nE '#[[:space:]]*include.*(sys/socket|pthread|sys/epoll|netinet|curl/|transport/|scheduler/)' "${pure[@]}")"
complain "the core neither prints nor ends the process" \
	"$(grep -nE '(^|[^a-z_])(printf|fprintf|puts|perror|abort|exit|assert)\(' "${core[@]}" | grep -vE 'static_assert|_Static_assert|:[0-9]+:(\/|[[:space:]])\*')"
complain "lines that are not finished" \
	"$(git grep -nIE '(/\*|//|--|#|^[[:space:]]*\*).*(TODO|FIXME)([^A-Za-z]|$)' -- engine lua scripts spec docs ':!scripts/lint/sources.sh')"
complain "paths of one machine" \
	"$(git grep -nIE '(^|[^A-Za-z0-9_.])/(work|home|root)/' -- . ':!scripts/lint/sources.sh')"
complain "spaces at line ends" "$(git grep -nIE '[[:space:]]+$' -- '*.c' '*.h' '*.lua' '*.sh' Makefile)"

exit $bad
