#!/usr/bin/env bash
# report.sh LOG STATUS summarizes a log of go test -v. It prints the failures and the
# skipped tests with reasons, and ends with the lines of go test.
set -uo pipefail
log=$1 status=$2

# Of a failed package it prints all but the tests that passed; of the others, nothing.
[ "$status" = 0 ] || awk '
	/^(ok  |FAIL|\?   )/ { if (/^FAIL/) show(); lines = 0; next }
	/^=== (RUN|PAUSE|CONT|NAME)/ || /^ *--- PASS/ { next }
	{ part[++lines] = $0 }
	END { show() }
	function show(i) { for (i = 1; i <= lines; i++) print part[i] }' "$log"

# The reason of a skip is the last line that the test logged before it.
awk '
	/^ *--- SKIP: / { count++; sub(/^ *--- SKIP: /, ""); sub(/ \(.*/, ""); list = list "  SKIPPED " $0 ": " reason "\n"; next }
	/^ +[A-Za-z0-9_]+\.go:[0-9]+: / { reason = $0; sub(/^ +[A-Za-z0-9_]+\.go:[0-9]+: /, "", reason) }
	END { printf "\n%stests skipped: %d\n\n", list, count }' "$log"

grep -E '^(ok  |FAIL|\?   )' "$log" | grep -v '^FAIL$'
[ "$status" = 0 ] || echo FAIL
exit "$status"
