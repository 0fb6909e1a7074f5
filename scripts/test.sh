#!/usr/bin/env bash
# Runs the tests, shows what failed, says which were skipped and why, and ends with the lines of go test.
set -uo pipefail
cd "$(dirname "$0")/.."
export CGO_CFLAGS="${CGO_CFLAGS:--g -O2 -Wno-deprecated-declarations}" # as in the Makefile
tests=$((2 * $(nproc))) # of a package at the same time: those that may overlap wait for daemons most of the time
log=$(mktemp)
trap 'rm -f "$log"' EXIT
PATH="$PWD/bin:$PATH" "${GO:-go}" test -v -timeout 30m -parallel "$tests" "${@:-./...}" >"$log" 2>&1
scripts/report.sh "$log" $?
