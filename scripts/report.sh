#!/usr/bin/env bash
# report.sh LOG STATUS shows of a log of go test -v what failed, says which tests were skipped and why, and ends with the lines of go test.
set -uo pipefail
log=$1 status=$2

# Of a package that failed, everything but what passed; of the others, nothing.
[ "$status" = 0 ] || awk '
	/^(ok  |FAIL|\?   )/ { if (/^FAIL/) printf "%s", part; part = ""; next }
	/^=== (RUN|PAUSE|CONT|NAME)/ || /^ *--- PASS/ { next }
	{ part = part $0 "\n" }
	END { printf "%s", part }' "$log"

# The reason of a skip is the line that the test logged last before it.
awk '
	/^ *--- SKIP: / { count++; sub(/^ *--- SKIP: /, ""); sub(/ \(.*/, ""); list = list "  SKIPPED " $0 ": " reason "\n"; next }
	/^ +[A-Za-z0-9_]+\.go:[0-9]+: / { reason = $0; sub(/^ +[A-Za-z0-9_]+\.go:[0-9]+: /, "", reason) }
	END { printf "\n%stests skipped: %d\n\n", list, count }' "$log"

grep -E '^(ok  |FAIL|\?   )' "$log" | grep -v '^FAIL$'
[ "$status" = 0 ] || echo FAIL
exit "$status"
