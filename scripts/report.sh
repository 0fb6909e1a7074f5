#!/usr/bin/env bash
# report.sh LOG STATUS summarizes a log of go test -v. It prints the failures and the
# skipped tests with reasons, then the lines of go test, and ends with the tests that
# failed and what they said last: a log of which only the end is kept still tells.
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

# Where the time goes: tests of the first level, and scripts.
echo "slowest tests:"
grep -E '^ *--- (PASS|FAIL): ' "$log" | sed -E 's/^ *--- (PASS|FAIL): ([^ ]+) \(([0-9.]+)s\)$/\3 \2/' |
	grep -E '^[0-9.]+ (Test[^/]*|TestScripts/[^/]*)$' | sort -rn | head -25 | sed 's/^/  /'
echo

grep -E '^(ok  |FAIL|\?   )' "$log" | grep -v '^FAIL$'
[ "$status" != 0 ] || exit 0

# The lines of one test stand between a line that names it and the next such line.
awk '
	/^=== (RUN|PAUSE|CONT|NAME)/ { test = $3; next }
	/^ *--- FAIL: / { failed[++count] = $3; time[count] = $4; next }
	/^ *--- / { next }
	/^panic: |^fatal error: / && !fatal { fatal = $0 }
	/^    / {
		sub(/^ +/, "")
		line = substr($0, 1, 300)
		if (/^[A-Za-z0-9_]+_test\.go:[0-9]+: /) told[test, ++tells[test]] = line
		else {
			said[test, ++lines[test]] = line
			if (line ~ /^([A-Za-z.]*Error|FAIL|ERROR)(:|$)/) named[test, ++names[test]] = line
		}
	}
	END {
		print ""
		if (fatal) print fatal
		for (i = 1; i <= count && i <= 8; i++) {
			test = failed[i]
			print "failed: " test " " time[i]
			# what a test reports itself comes before the output of its programs
			first = tells[test] > 6 ? tells[test] - 5 : 1
			for (j = first; j <= tells[test]; j++) print "  " told[test, j]
			# a test in another language names in the middle what failed
			for (j = 1; j <= names[test] && j <= 6; j++) print "  " named[test, j]
			first = lines[test] > 12 ? lines[test] - 11 : 1
			for (j = first; j <= lines[test]; j++) print "  " said[test, j]
		}
		if (count > 8) print "and " count - 8 " more"
	}' "$log"
echo FAIL
exit "$status"
