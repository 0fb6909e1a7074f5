#!/usr/bin/env bash
# Takes machines away from tasks that are saved, N times (100 unless said), in a pool of three hosts of this machine; see TestCheckpoints in
# internal/e2e. Needs root and a CRIU that works here (scripts/criu.sh). Any task lost, and any line lost or doubled, is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export ROOST_CHECKPOINT_ROUNDS=${1:-100}
go test ./internal/e2e -run 'TestCheckpoints$' -count=1 -timeout "$((ROOST_CHECKPOINT_ROUNDS * 2 + 20))m" -v "${@:2}"
