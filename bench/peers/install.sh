#!/usr/bin/env bash
# Makes a Debian in $PEERS (else roost-peers in $XDG_CACHE_HOME, else /var/tmp/roost-peers) with HTCondor, Slurm and Grid Engine in it, from the mirror
# that this machine's own apt uses (or $MIRROR). Nothing is started there. Made once; "rm -rf" on the directory is all there is to undo: what this
# mounts is mounted for it alone, and is gone when it ends.
set -euo pipefail
suite=trixie # Debian 13: the first release since long with all three of them
packages="htcondor slurmctld slurmd slurm-client munge gridengine-master gridengine-exec gridengine-client procps iproute2"
root=${PEERS:-${XDG_CACHE_HOME:-/var/tmp}/roost-peers}

fail() {
	printf 'peers: %s\n' "$@" >&2
	exit 1
}

[ -e "$root/ready" ] && [ "$(cat "$root/ready")" = "$suite $packages" ] && exit
[ "$(id -u)" = 0 ] || fail "only root can make a chroot and namespaces"
command -v apt-get >/dev/null || fail "the other systems come from Debian's packages, and this machine has no apt-get"
command -v debootstrap >/dev/null || apt-get install -y -q --no-install-recommends debootstrap >/dev/null ||
	fail "debootstrap is missing and could not be installed"
[ -n "${ROOST_PEERS_ALONE:-}" ] || ROOST_PEERS_ALONE=1 exec unshare --mount --propagation private "$0"
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)}
[ -n "$mirror" ] || fail "apt has no mirror of Debian in its sources; name one in MIRROR"

if [ ! -e "$root/debian" ]; then
	echo "peers: making a Debian $suite in $root" >&2
	rm -rf "$root"
	mkdir -p "$root"
	debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 || fail "debootstrap failed; the end of $root.log:" "$(tail -n 5 "$root.log")"
	mv "$root.log" "$root/debian"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # a package that is installed starts no daemon
chmod +x "$root/usr/sbin/policy-rc.d"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"

inside() { chroot "$root" env -i DEBIAN_FRONTEND=noninteractive LC_ALL=C HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
inside debconf-set-selections <<-'ANSWERS'
	gridengine-common shared/gridenginemaster string localhost
	gridengine-common shared/gridenginecell string default
	gridengine-common shared/gridengineconfig boolean false
ANSWERS
echo "peers: installing HTCondor, Slurm and Grid Engine there" >&2
{ inside apt-get update -q && inside apt-get install -y -q --no-install-recommends $packages; } >"$root/install.log" 2>&1 ||
	fail "the installation failed; the end of $root/install.log:" "$(tail -n 10 "$root/install.log")"
inside id bench >/dev/null 2>&1 || inside useradd --create-home --uid 1001 bench
inside apt-get clean
echo "$suite $packages" >"$root/ready"
