#!/usr/bin/env bash
# Runs the tests, prints the failures and the skipped tests with reasons, and ends with
# the lines of go test.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/flags.sh
tests=$((2 * $(nproc))) # per package at the same time: parallel tests mostly wait for daemons
log=$(mktemp)
trap 'rm -f "$log"' EXIT
PATH="$PWD/bin:$PATH" "${GO:-go}" test -v -timeout 30m -parallel "$tests" "${@:-./...}" >"$log" 2>&1
scripts/report.sh "$log" $?
