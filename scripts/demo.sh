#!/usr/bin/env bash
# The demo, against the real service where ANTHROPIC_API_KEY is set, against the bundled model server otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
lua=${LUA:-lua5.4}
if [ -n "${ANTHROPIC_API_KEY:-}" ]; then
	echo "ANTHROPIC_API_KEY is set: this talks to ${ANTHROPIC_BASE_URL:-the real service}."
	exec "$lua" scripts/demo.lua
fi
echo "No ANTHROPIC_API_KEY: this talks to the bundled model server, over real HTTP."
exec scripts/with_model_server.sh --builtin demo -- "$lua" scripts/demo.lua
