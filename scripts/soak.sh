#!/usr/bin/env bash
# Breaks everything that can break in a pool of nine hosts on this machine, hundreds of times an hour, for N minutes (30 unless said), while jobs flow; see
# TestSoak in internal/e2e. Before that it kills the daemons of a pool on one machine at random, twenty times for each of the minutes and 200 times more
# (TestKilledAtRandom, of which the ordinary tests have a first share). Needs root. A promise of the design that does not hold is a failure, and so is a machine on which that cannot be tried.
# ROOST_SOAK_SEED=… draws the faults of a former run again. An interrupt ends the faults, and what is left is still looked at.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export ROOST_SOAK_MINUTES=${1:-30}
[[ $ROOST_SOAK_MINUTES =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "soak: \"$ROOST_SOAK_MINUTES\" is no number of minutes: make soak MINUTES=30" >&2; exit 64; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ROOST_KILLS=$((${ROOST_SOAK_MINUTES%.*} * 20 + 200)) "${GO:-go}" test ./internal/e2e -run 'TestKilledAtRandom$' -count=1 -timeout "$((${ROOST_SOAK_MINUTES%.*} + 60))m" -v 2>&1 | tee -i "$log" || status=$?
"${GO:-go}" test ./internal/e2e -run 'TestSoak$' -count=1 -timeout "$((${ROOST_SOAK_MINUTES%.*} * 2 + 30))m" -v "${@:2}" 2>&1 | tee -ia "$log" || status=$?
! grep -q '^--- SKIP' "$log" || { echo "soak: nothing was tried, for the reason above" >&2; status=1; }
exit $status
