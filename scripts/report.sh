#!/usr/bin/env bash
# report.sh LOG STATUS shows of a log of go test -v what failed, says which tests were skipped and why, and ends with the lines of go test.
set -uo pipefail
log=$1 status=$2

# Of a package that failed, everything but what passed; of the others, nothing.
[ "$status" = 0 ] || awk '
	/^(ok  |FAIL|\?   )/ { if (/^FAIL/) show(); lines = 0; next }
	/^=== (RUN|PAUSE|CONT|NAME)/ || /^ *--- PASS/ { next }
	{ part[++lines] = $0 }
	END { show() }
	function show(i) { for (i = 1; i <= lines; i++) print part[i] }' "$log"

# The reason of a skip is the line that the test logged last before it.
awk '
	/^ *--- SKIP: / { count++; sub(/^ *--- SKIP: /, ""); sub(/ \(.*/, ""); list = list "  SKIPPED " $0 ": " reason "\n"; next }
	/^ +[A-Za-z0-9_]+\.go:[0-9]+: / { reason = $0; sub(/^ +[A-Za-z0-9_]+\.go:[0-9]+: /, "", reason) }
	END { printf "\n%stests skipped: %d\n\n", list, count }' "$log"

grep -E '^(ok  |FAIL|\?   )' "$log" | grep -v '^FAIL$'
[ "$status" = 0 ] || echo FAIL
exit "$status"
