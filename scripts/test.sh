#!/usr/bin/env bash
# Runs the tests, prints the failures and the skipped tests with reasons, and ends with
# the lines of go test.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/flags.sh
# Most tests of daemons wait for the larger part of their time: for leases, elections,
# intervals and restarts. So three a core run together, which keeps the cores busy until
# the last test; with half of them a core was idle. The longest package begins first.
tests=$((3 * $(nproc)))
packages=$(($(nproc) + 1))
[ $# -gt 0 ] || set -- ./internal/e2e ./...
log=$(mktemp)
trap 'rm -f "$log"' EXIT
PATH="$PWD/bin:$PATH" "${GO:-go}" test -v -timeout 30m -p "$packages" -parallel "$tests" "$@" >"$log" 2>&1
scripts/report.sh "$log" $?
