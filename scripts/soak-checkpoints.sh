#!/usr/bin/env bash
# Evicts tasks with checkpoints from their machines, N times (default 100), in a pool of
# three hosts on this machine; see TestCheckpoints in internal/e2e. Needs root and a CRIU
# that works here (scripts/criu.sh). A lost task, or a lost or repeated line, is a
# failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export ROOST_CHECKPOINT_ROUNDS=${1:-100}
go test ./internal/e2e -run 'TestCheckpoints$' -count=1 -timeout "$((ROOST_CHECKPOINT_ROUNDS * 2 + 20))m" -v "${@:2}"
