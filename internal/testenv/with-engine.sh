#!/usr/bin/env bash
# Executes a command with an engine on PATH: the installed one, or the OpenTofu
# that setup.sh has put into the user's cache. Usage: with-engine.sh COMMAND [ARGUMENT...]
set -euo pipefail
if command -v terraform >/dev/null || command -v tofu >/dev/null; then
  exec "$@"
fi
exec "$(dirname "$0")/only-tofu.sh" "" "$@"
