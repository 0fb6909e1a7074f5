#!/usr/bin/env bash
# Checks the code without running it. It runs all checks, and the status tells whether any
# failed.
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
bad=
. scripts/flags.sh

check() {
	local name=$1 said
	printf 'check: %-22s' "$name"
	shift
	if said=$("$@" 2>&1); then
		echo "fine${said:+ ($said)}"
	else
		printf 'FOUND\n%s\n' "$said"
		bad="$bad, $name"
	fi
}

formatted() {
	local files
	files=$(git ls-files -co --exclude-standard -- '*.go' | xargs gofmt -l) || return 1
	[ -z "$files" ] || { printf 'not in the form of gofmt:\n%s\n' "$files"; return 1; }
}

# The first lines of generated code contain the version of the compiler, which may differ
# between machines.
fresh() {
	command -v protoc >/dev/null || { echo "NOT CHECKED: no protoc here"; return; }
	local tmp status=0
	tmp=$(mktemp -d)
	scripts/generate.sh "$tmp" || status=1
	for f in roost.pb.go roost_grpc.pb.go schedd_messages.go scheddapi/schedd.pb.go; do
		diff -u -I '^// .*protoc' "internal/wire/$f" "$tmp/$f" || status=1
	done
	rm -rf "$tmp"
	[ $status = 0 ] || echo 'run "make generate"'
	return $status
}

scripts_parse() {
	local f
	for f in scripts/*.sh scripts/vm/{debs.sh,run,go} bench/peers/install.sh bench/peers/conf/*.sh .ci/run; do bash -n "$f" || return 1; done
}

check "gofmt" formatted
check "go vet" "$go" vet ./...
# No file excludes the tag of another, so one more run sees them all.
check "go vet, with all tags" "$go" vet -tags "attacks,faults,plants,$LEAN" ./...
check "staticcheck" "$go" tool staticcheck ./...
check "modules" "$go" mod verify
check "generated code" fresh
check "shell scripts" scripts_parse
[ -z "$bad" ] || { echo "check: found by ${bad#, }"; exit 1; }
