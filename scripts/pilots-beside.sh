#!/usr/bin/env bash
# Tries pilots in real batch systems: Slurm, HTCondor and Grid Engine of Debian, in namespaces behind a router that lets only ssh in. Needs root, and
# takes half an hour. Arguments are names of these systems (slurm, condor, gridengine); none is all. ROOST_OUTER_OUTAGE is how long the daemon with the
# queue is taken away (2m).
set -euo pipefail
cd "$(dirname "$0")/.."
root=${PEERS:-${XDG_CACHE_HOME:-/var/tmp}/roost-peers}
PEERS=$root bench/peers/install.sh
[ -x "$root/usr/sbin/sshd" ] || chroot "$root" env -i DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	sh -c 'apt-get update -q && apt-get install -y -q --no-install-recommends openssh-server' >/dev/null
unset GOFLAGS
. scripts/flags.sh
make build
systems=$(IFS='|'; echo "${*:-.*}")
PATH=$PWD/bin:$PATH ROOST_OUTER_ROOT=$root go test -ldflags=-w -count=1 -timeout 2h -v -run "TestOuterSystems/^($systems)\$" ./internal/e2e
