#!/usr/bin/env bash
# Puts the script of axe-core, which looks for what people with disabilities stumble over,
# into build/axe for the tests of pages. npm has it.
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.14.1
sum=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
file=build/axe/axe.min.js
[ ! -e "$file" ] || exit 0
command -v npm >/dev/null || { echo "axe.sh: npm is not installed: pages are not checked with axe-core" >&2; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && timeout 60 npm pack --silent "axe-core@$version" >/dev/null && tar xzf ./*.tgz) ||
	{ echo "axe.sh: npm did not give axe-core $version: pages are not checked with it" >&2; exit 0; }
echo "$sum  $work/package/axe.min.js" | sha256sum --check --quiet
mkdir -p build/axe
mv "$work/package/axe.min.js" "$file"
