#!/usr/bin/env bash
# Runs each fuzz test for the given time. It writes its findings to testdata of the
# package.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/flags.sh
grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' "$file" | while read -r name; do
		echo "fuzz: $name in $(dirname "$file")"
		"${GO:-go}" test -run '^$' -fuzz "^$name\$" -fuzztime "$1" -fuzzminimizetime 10x "$(dirname "$file")"
	done
done
