#!/usr/bin/env bash
# Runs the tests, prints the failures and the skipped tests with reasons, and ends with
# the lines of go test. A few failed tests are run once more alone (again.sh).
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/flags.sh
# So many tests of daemons at a time keep the cores busy. More would only be slower each,
# and meet limits of time that a user never meets. The longest package begins first.
tests=$((3 * $(nproc) / 2))
packages=$(($(nproc) + 1))
[ $# -gt 0 ] || set -- ./internal/e2e ./...
log=$(mktemp)
trap 'rm -f "$log"' EXIT
PATH="$PWD/bin:$PATH" "${GO:-go}" test -v -ldflags=-w -timeout 45m -p "$packages" -parallel "$tests" "$@" >"$log" 2>&1
status=$?
scripts/report.sh "$log" $status
[ $status = 0 ] || scripts/again.sh "$log"
