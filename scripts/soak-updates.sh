#!/usr/bin/env bash
# Gives a service in the queue of a cell N revisions (default 100), one after another, on
# this machine. Meanwhile a user submits jobs, and the leader of the queue is killed every
# few seconds; see TestUpdatesSoak in internal/e2e. Needs root. A task that is started
# twice in an update, more tasks that are down than max_down allows, and a job that is
# lost are failures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/flags.sh
export ROOST_SOAK_UPDATES=${1:-100}
[[ $ROOST_SOAK_UPDATES =~ ^[1-9][0-9]{0,5}$ ]] || { echo "soak-updates: \"$ROOST_SOAK_UPDATES\" is no number of updates" >&2; exit 64; }
"${GO:-go}" test ./internal/e2e -run 'TestUpdatesSoak$' -count=1 -timeout "$((ROOST_SOAK_UPDATES + 20))m" -v "${@:2}"
