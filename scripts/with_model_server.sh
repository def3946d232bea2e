#!/usr/bin/env bash
# Runs a command beside the model server: scripts/with_model_server.sh [server option…] -- COMMAND [ARGUMENT…]
# The command finds the server in ANTHROPIC_BASE_URL; the server ends when the command does.
set -euo pipefail
cd "$(dirname "$0")/.."
options=()
while [ "$1" != -- ]; do
	options+=("$1")
	shift
done
shift

coproc SERVER { exec "${LUA:-lua5.4}" scripts/model_server.lua "${options[@]}"; }
server_pid=$SERVER_PID
exec {to_server}>&"${SERVER[1]}" # the server ends when its standard input does
read -r word url _ <&"${SERVER[0]}" || word=none
if [ "$word" != listening ]; then
	echo "the model server did not start" >&2
	exit 1
fi
status=0
ANTHROPIC_BASE_URL=$url ANTHROPIC_API_KEY=${ANTHROPIC_API_KEY:-local} "$@" || status=$?
exec {to_server}>&- {SERVER[1]}>&- 2>/dev/null || true
wait "$server_pid" 2>/dev/null || true
exit $status
