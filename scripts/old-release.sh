#!/usr/bin/env bash
# old-release.sh [REVISION] builds the programs of an older version from the history of
# this repository into build/old/COMMIT/, once, and prints that directory. Without an
# argument OLD names the revision; without both it is the last tag, or, where there is
# none, the commit in scripts/old-release.txt. The tests of upgrades start pools with
# these programs, and scripts/old-data.sh has them write files that this version reads.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
	printf 'old-release: %s\n' "$@" >&2
	exit 1
}

revision=${1:-${OLD:-$(git describe --tags --abbrev=0 2>/dev/null || cat scripts/old-release.txt)}}
commit=$(git rev-parse --verify --quiet "$revision^{commit}") || fail \
	"this repository has no revision $revision" \
	"a clone without history has none: git fetch --unshallow --tags"
to=$PWD/build/old/${commit:0:12}
if [ -x "$to/roost" ]; then
	echo "$to"
	exit
fi

. scripts/flags.sh
go=${GO:-go} work=$PWD/build/old/source-${commit:0:12}
finish() { git worktree remove --force "$work" 2>/dev/null || true; }
trap finish EXIT
finish
git worktree add --quiet --detach "$work" "$commit"
rm -rf "$to.partial"
mkdir -p "$to.partial"
echo "old-release: building $revision (${commit:0:12})" >&2
cd "$work"
CGO_ENABLED=0 "$go" build -o "$to.partial/" ./cmd/roost ./cmd/roost-q ./cmd/roost-accountant
"$go" build -o "$to.partial/" ./cmd/roost-daemon ./cmd/roost-negotiator ./cmd/roost-node ./cmd/roost-web
CGO_ENABLED=0 "$go" build -ldflags '-s -w' -o "$to.partial/" ./cmd/roost-starter ./cmd/roost-ranks
mv "$to.partial" "$to"
echo "$to"
