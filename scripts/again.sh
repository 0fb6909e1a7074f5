#!/usr/bin/env bash
# again.sh LOG runs the tests that a log of go test -v shows as failed once more, one at a
# time and with nothing beside them, and ends with status 0 if they all pass. A limit of
# time that a busy machine missed is no defect; a defect fails again. What passed only
# alone is printed with a count, so that it is seen. It runs nothing when a package did
# not build, panicked or ended without a failed test, or when more than six tests failed.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/flags.sh
log=$1
most=6

# Lines of "PACKAGE TEST"; of TestScripts only its failed scripts.
tests=$(awk '
	/^panic: |^fatal error: |^FAIL\t.*\[(build|setup) failed\]/ { broken = 1 }
	/^ *--- FAIL: TestScripts\// || /^--- FAIL: / { if ($3 != "TestScripts") failed[++count] = $3; next }
	/^FAIL\t/ { if (!count) broken = 1; for (i = 1; i <= count; i++) print $2, failed[i]; count = 0 }
	/^ok  \t/ { count = 0 }
	END { exit broken }' "$log") || { echo "again: a package is broken, nothing is run again"; exit 1; }
count=$(grep -c . <<<"$tests")
[ "$count" -ge 1 ] && [ "$count" -le $most ] || { echo "again: $count tests failed, nothing is run again"; exit 1; }

status=0 alone=0
while read -r package test; do
	case $test in
	TestScripts/*) pattern="^TestScripts\$/^${test#TestScripts/}\$" ;;
	*) pattern="^$test\$" ;;
	esac
	once=$(mktemp)
	if PATH="$PWD/bin:$PATH" "${GO:-go}" test -v -ldflags=-w -timeout 15m -parallel 1 -run "$pattern" "$package" >"$once" 2>&1 &&
		grep -qE "^ *--- PASS: $test \\(" "$once"; then
		echo "PASSED ALONE: $package $test"
		alone=$((alone + 1))
	else
		echo "FAILED AGAIN: $package $test"
		tail -n 60 "$once"
		status=1
	fi
	rm -f "$once"
done <<<"$tests"
echo "tests that passed only alone: $alone"
exit $status
