#!/usr/bin/env bash
# Installs missing tools. Arguments name what they are for: go, tests, criu, clients,
# pam, generate.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
	printf 'setup: %s\n' "$@" >&2
	exit 1
}

# The directory of Go's own installer may not be in PATH. From 1.21 on, any Go fetches the
# one that go.mod asks for, if it may: Debian's own setting says that it may not.
need_go() {
	export GOTOOLCHAIN=${GOTOOLCHAIN:-auto}
	command -v "${GO:-go}" >/dev/null || install_go
	local have
	have=$("${GO:-go}" env GOVERSION 2>&1) || fail "\"${GO:-go} env\" does not work:" "$have" \
		"Version $(wanted) or newer is needed; Go 1.21 and later download it if they may reach the network."
	[ "$(printf '%s\ngo%s\n' "$have" "$(wanted)" | sort -V | head -1)" = "go$(wanted)" ] || fail \
		"$have is too old: version $(wanted) or newer is needed (https://go.dev/dl)."
}

# install_go installs the distribution's Go where that is new enough to fetch a newer one.
install_go() {
	local machine packaged=
	machine=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
	if [ -z "${GO:-}" ] || [ "$GO" = go ]; then
		if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
			[ -n "$(candidate)" ] || apt-get update >/dev/null 2>&1 || true
			packaged=$(candidate)
		fi
	fi
	if [ -n "$packaged" ] && dpkg --compare-versions "$packaged" ge 2:1.21; then
		echo "setup: installing golang-go, ca-certificates" >&2
		apt-get install -y --no-install-recommends golang-go ca-certificates >/dev/null 2>&1 || true
	fi
	command -v "${GO:-go}" >/dev/null || fail \
		"Go is not installed (no \"${GO:-go}\" in PATH)." \
		"Version $(wanted) or newer is needed. This line installs it, as root:" \
		"  curl -fsSL https://go.dev/dl/go$(wanted).linux-$machine.tar.gz | tar -C /usr/local -xz && ln -sf /usr/local/go/bin/go /usr/local/bin/"
}

candidate() { apt-cache policy golang-go 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'; }

wanted() { awk '$1 == "go" { print $2 }' go.mod; }

# package PROGRAM NAME installs the Debian package NAME if PROGRAM is missing.
package() {
	PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null && return
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo "setup: $1 is missing; install it as root (apt-get install $2). Tests that need it are skipped." >&2
		return
	fi
	echo "setup: installing $2" >&2
	apt-get install -y --no-install-recommends "$2" >/dev/null 2>&1 ||
		{ apt-get update >/dev/null 2>&1 && apt-get install -y --no-install-recommends "$2" >/dev/null 2>&1; } ||
		echo "setup: $2 could not be installed. Tests that need it are skipped." >&2
}

# Debian's Prometheus would start a server here that listens to everybody. Only its
# programs are unpacked, into build/.
unpack_prometheus() {
	if command -v prometheus >/dev/null && command -v promtool >/dev/null; then return; fi
	[ ! -x build/prometheus/usr/bin/prometheus ] || return 0
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		echo "setup: prometheus is missing. Tests that need it are skipped." >&2
		return
	fi
	echo "setup: unpacking prometheus" >&2
	mkdir -p build/prometheus
	(cd build/prometheus &&
		{ apt-get download prometheus || { apt-get update && apt-get download prometheus; }; } &&
		dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool ./usr/bin/prometheus
		rm -f prometheus_*.deb) >/dev/null 2>&1
	[ -x build/prometheus/usr/bin/prometheus ] ||
		echo "setup: prometheus could not be unpacked. Tests that need it are skipped." >&2
}

# nginx comes with a server that would start here, too.
unpack_nginx() {
	if PATH="$PATH:/usr/sbin:/sbin" command -v nginx >/dev/null || [ -x build/nginx/usr/sbin/nginx ]; then return; fi
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		echo "setup: nginx is missing. Tests that need it are skipped." >&2
		return
	fi
	echo "setup: unpacking nginx" >&2
	mkdir -p build/nginx
	(cd build/nginx && { apt-get download nginx || { apt-get update && apt-get download nginx; }; } &&
		dpkg-deb --fsys-tarfile nginx_*.deb | tar -x ./usr/sbin/nginx; rm -f nginx_*.deb) >/dev/null 2>&1
	[ -x build/nginx/usr/sbin/nginx ] ||
		echo "setup: nginx could not be unpacked. Tests that need it are skipped." >&2
}

# So does Caddy.
unpack_caddy() {
	if command -v caddy >/dev/null || [ -x build/caddy/usr/bin/caddy ]; then return; fi
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		echo "setup: caddy is missing. Tests that need it are skipped." >&2
		return
	fi
	echo "setup: unpacking caddy" >&2
	mkdir -p build/caddy
	(cd build/caddy && { apt-get download caddy || { apt-get update && apt-get download caddy; }; } &&
		dpkg-deb --fsys-tarfile caddy_*.deb | tar -x ./usr/bin/caddy; rm -f caddy_*.deb) >/dev/null 2>&1
	[ -x build/caddy/usr/bin/caddy ] ||
		echo "setup: caddy could not be unpacked. Tests that need it are skipped." >&2
}

for part in "$@"; do
	case $part in
	go) need_go ;;
	tests)
		package ip iproute2
		package iptables iptables
		package nsenter util-linux
		package python3 python3
		/usr/bin/python3 -c 'import joblib' 2>/dev/null || package /usr/lib/python3/dist-packages/joblib/__init__.py python3-joblib
		[ -e /usr/lib/python3/dist-packages/dask/__init__.py ] || package /usr/lib/python3/dist-packages/dask/__init__.py python3-dask
		[ -e /usr/lib/python3/dist-packages/drmaa/__init__.py ] || package /usr/lib/python3/dist-packages/drmaa/__init__.py python3-drmaa
		package chromium chromium
		package dig bind9-dnsutils
		package umoci umoci
		package mpicc.mpich libmpich-dev
		[ -e /usr/include/slurm/pmi2.h ] || package /usr/include/slurm/pmi2.h libpmi2-0-dev
		package mpiexec.hydra mpich
		package mksquashfs squashfs-tools
		package skopeo skopeo
		package buildah buildah
		package fsck.erofs erofs-utils
		[ -n "$(ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || package initdb postgresql
		unpack_prometheus
		unpack_nginx
		unpack_caddy
		scripts/axe.sh
		scripts/criu.sh
		;;
	criu) scripts/criu.sh ;;
	pam)
		[ -e /usr/include/security/pam_appl.h ] || package /usr/include/security/pam_appl.h libpam0g-dev
		;;
	clients)
		package /usr/bin/snakemake snakemake
		package mpirun.openmpi openmpi-bin
		/usr/bin/python3 -c 'import mpi4py' 2>/dev/null || package /usr/lib/python3/dist-packages/mpi4py/__init__.py python3-mpi4py
		;;
	generate)
		package protoc protobuf-compiler
		command -v protoc >/dev/null || fail "protoc is needed to generate code."
		;;
	*) fail "no part is called $part" ;;
	esac
done
