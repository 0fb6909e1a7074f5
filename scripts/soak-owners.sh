#!/usr/bin/env bash
# Simulates the owners of three desktops in a pool on this machine, who come and go at
# random for N minutes (default 60), while jobs run, daemons are killed and cables are
# pulled; see TestOwners in internal/e2e, after the scenario of TestDesktops. Needs root
# and a CRIU that works here (scripts/criu.sh). A task that is lost, runs twice, or runs
# while the machine's owner is present is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export ROOST_OWNER_MINUTES=${1:-60}
go test ./internal/e2e -run 'Test(Desktops|Owners)$' -count=1 -timeout "$((ROOST_OWNER_MINUTES + 20))m" -v "${@:2}"
