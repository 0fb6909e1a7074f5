#!/usr/bin/env bash
# again.sh LOG runs the tests once more, one by one, that failed in a log of go test -v, if they are few, and says which. The status is 0 if all of them
# passed: then the machine was in their way and not what they test, as on one with two cores that others use, too. Each such test is a test to be mended.
set -uo pipefail
cd "$(dirname "$0")/.."
log=$1
most=4

# Lines "PACKAGE TEST"; of the scripts each is one, of all else whoever has no name above him. A package that failed without a test that did is no case for this.
failed=$(awk '
	/^ *--- FAIL: / { name = $3; depth = gsub("/", "/", name); if (depth == 0 && name != "TestScripts" || depth == 1 && name ~ /^TestScripts\//) list[++n] = name; next }
	/^FAIL\t/ { if (!n) print $2, "?"; for (i = 1; i <= n; i++) print $2, list[i]; n = 0; next }
	/^ok / { n = 0 }' "$log" | sort -u)
count=$(grep -c . <<<"$failed")
if [ "$count" = 0 ] || [ "$count" -gt "$most" ] || grep -q ' ?$' <<<"$failed"; then
	echo "not run again: $count tests failed, or a package did as a whole"
	exit 1
fi
status=0
while read -r package name; do
	pattern="^${name//\//\$/^}\$"
	if PATH="$PWD/bin:$PATH" "${GO:-go}" test -count=1 -timeout 15m -run "$pattern" "$package" >"$log.again" 2>&1; then
		echo "FAILED ONCE, passed when it was run again alone: $package $name"
	else
		echo "failed again: $package $name"
		tail -n 60 "$log.again"
		status=1
	fi
done <<<"$failed"
rm -f "$log.again"
exit "$status"
