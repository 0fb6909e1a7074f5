#!/usr/bin/env bash
# Has the owners of three desktops of a pool on this machine come and go at random for N minutes (60 unless said), while jobs flow, daemons are killed and
# cables are pulled; see TestOwners in internal/e2e, after the story of TestDesktops. Needs root and a CRIU that works here (scripts/criu.sh). Any task lost or done twice, and any that runs
# while its machine's owner is there, is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export ROOST_OWNER_MINUTES=${1:-60}
go test ./internal/e2e -run 'Test(Desktops|Owners)$' -count=1 -timeout "$((ROOST_OWNER_MINUTES + 20))m" -v "${@:2}"
