#!/usr/bin/env bash
# upgrade.sh ROUNDS upgrades a busy pool of nine hosts on this machine host by host, from
# the programs of an older version to those of this tree and back, while jobs run; see
# TestUpgrade in internal/e2e. OLD=REVISION says which older version (old-release.sh).
# Needs root. A violated guarantee is a failure, and so is a machine on which the test
# cannot run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/flags.sh
export ROOST_UPGRADE_ROUNDS=${1:-20}
[[ $ROOST_UPGRADE_ROUNDS =~ ^[1-9][0-9]*$ ]] || { echo "upgrade: \"$ROOST_UPGRADE_ROUNDS\" is no number of rounds: make test-upgrade ROUNDS=20" >&2; exit 64; }
ROOST_OLD=$(scripts/old-release.sh)
export ROOST_OLD
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
PATH="$PWD/bin:$PATH" "${GO:-go}" test ./internal/e2e -ldflags=-w -run 'TestUpgrade$' -count=1 -timeout "$((ROOST_UPGRADE_ROUNDS * 3 + 10))m" -v 2>&1 | tee -i "$log" || status=$?
! grep -q '^--- SKIP' "$log" || { echo "upgrade: nothing was tried, for the reason above" >&2; status=1; }
exit $status
