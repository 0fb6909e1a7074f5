#!/usr/bin/env bash
# Injects every kind of fault into a pool of nine hosts on this machine, hundreds of times
# an hour, for N minutes (default 30), while jobs run; see TestSoak in internal/e2e.
# Before that it kills the daemons of a pool on one machine at random, twenty times for
# each of the minutes and 200 times more (TestKilledAtRandom, of which the ordinary tests
# run a first part). Needs root. A violated guarantee is a failure, and so is a machine on
# which the test cannot run. ROOST_SOAK_SEED=… repeats the faults of an earlier run. An
# interrupt ends the faults, and the state at that time is still checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/flags.sh
export ROOST_SOAK_MINUTES=${1:-30}
[[ $ROOST_SOAK_MINUTES =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "soak: \"$ROOST_SOAK_MINUTES\" is no number of minutes: make soak MINUTES=30" >&2; exit 64; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ROOST_KILLS=$((${ROOST_SOAK_MINUTES%.*} * 20 + 200)) "${GO:-go}" test ./internal/e2e -run 'TestKilledAtRandom$' -count=1 -timeout "$((${ROOST_SOAK_MINUTES%.*} + 60))m" -v 2>&1 | tee -i "$log" || status=$?
"${GO:-go}" test ./internal/e2e -run 'TestSoak$' -count=1 -timeout "$((${ROOST_SOAK_MINUTES%.*} * 2 + 30))m" -v "${@:2}" 2>&1 | tee -ia "$log" || status=$?
! grep -q '^--- SKIP' "$log" || { echo "soak: nothing was tried, for the reason above" >&2; status=1; }
exit $status
