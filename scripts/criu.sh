#!/usr/bin/env bash
# Provides a CRIU that can checkpoint on this kernel. With the argument "find" it only
# prints the path of a working one; with "unpack" it only unpacks the private prefix,
# untested: for a machine with another kernel.
#
# The CRIU of distributions is often older than the kernel: since Linux 6.16 every version
# before 4.2 fails on any process with a TCP socket, although "criu check" reports no
# problem. So a CRIU only counts after it has dumped and restored a process that listens
# on TCP. The script tries, in this order, the one in PATH, the private prefix, Debian's
# package, and Debian's newer package with its libraries, unpacked into the private
# prefix, where it changes nothing else on the system.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=${CRIU_PREFIX:-/usr/local/lib/roost/criu}
suite=${CRIU_SUITE:-forky}
PATH="$PATH:/usr/sbin:/sbin"

say() { echo "criu: $*" >&2; }
give_up() {
	say "$*" "Checkpoints do not work here, and tests that need them are skipped."
	exit 0
}

# key identifies a tested CRIU on this kernel. Another kernel or another file needs
# another test.
key() { printf '%s %s %s\n' "$(uname -r)" "$1" "$(stat -Lc '%Y %s' "$1")"; }

# works PATH succeeds if the CRIU has passed the self-test on this kernel, or passes it
# now. Results are cached, failures as well.
works() {
	[ -n "$1" ] && [ -x "$1" ] || return 1
	local verdicts="$prefix.verdicts" this verdict=bad
	this=$(key "$1")
	if [ -f "$verdicts" ]; then
		! grep -qxF "good $this" "$verdicts" || return 0
		! grep -qxF "bad $this" "$verdicts" || return 1
	fi
	! selftest "$1" || verdict=good
	printf '%s %s\n' $verdict "$this" >>"$verdicts"
	[ $verdict = good ]
}

# The process of the self-test inherits no descriptors, has a session of its own, and a
# listening socket.
listen() {
	local fd
	cd /
	for fd in /proc/self/fd/*; do
		fd=${fd##*/}
		[ "$fd" -le 2 ] || eval "exec $fd>&-"
	done
	exec env -i LC_ALL=C setsid perl -MSocket -e '
		my ($s, $f);
		socket($s, PF_INET, SOCK_STREAM, 0) && bind($s, sockaddr_in(0, INADDR_LOOPBACK)) && listen($s, 5) or exit 1;
		open($f, ">", $ARGV[0]) && close($f) or exit 1;
		my $end = time + 60;
		sleep 1 while time < $end' "$1" </dev/null >/dev/null 2>&1
}

selftest() (
	w=$(mktemp -d)
	trap 'rm -rf "$w"' EXIT
	mkdir "$w/images"
	listen "$w/ready" &
	pid=$!
	disown # otherwise the shell reports that it was killed
	for ((i = 0; i < 250; i++)); do
		[ -e "$w/ready" ] && break
		sleep 0.02
	done
	rm "$w/ready" 2>/dev/null || { kill -9 "$pid" 2>/dev/null; exit 1; }
	if ! timeout 30 "$1" dump -t "$pid" -D "$w/images" -o dump.log >/dev/null 2>&1; then
		kill -9 "$pid" 2>/dev/null
		exit 1
	fi
	while kill -0 "$pid" 2>/dev/null; do sleep 0.01; done # its pid must be free
	timeout 30 "$1" restore -d -D "$w/images" -o restore.log --pidfile "$w/pid" >/dev/null 2>&1 || exit 1
	pid=$(<"$w/pid")
	socket=$(find "/proc/$pid/fd" -lname 'socket:*' 2>/dev/null)
	kill -9 "$pid" 2>/dev/null
	[ -n "$socket" ]
)

found() {
	local c
	for c in "$(command -v criu || true)" "$prefix/bin/criu"; do
		works "$c" && echo "$c" && return
	done
	return 1
}

# Debian's package is installed unless it is known not to work: before 4.2 on Linux 6.16
# or newer.
install_package() {
	local candidate
	candidate=$(LC_ALL=C apt-cache policy criu 2>/dev/null | awk '$1 == "Candidate:" { print $2 }')
	case $candidate in '' | '(none)') return 1 ;; esac
	if [ "$(printf '6.16\n%s\n' "$(uname -r)" | sort -V | head -1)" = 6.16 ] && dpkg --compare-versions "$candidate" lt 4.2; then
		return 1
	fi
	say "installing Debian's criu $candidate"
	apt-get install -y --no-install-recommends criu >/dev/null 2>&1 || return 1
	hash -r
	works "$(command -v criu || true)"
}

# mirror prints the Debian mirror of the system.
mirror() {
	local m
	m=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | sed -n 1p)
	if [ -z "$m" ]; then
		apt-get update >/dev/null 2>&1 || true
		m=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | sed -n 1p)
	fi
	printf '%s' "$m"
}

# private_apt DIRECTORY MIRROR VALID configures an apt that knows one suite, trusts only
# Debian's keys, and has an empty list of installed packages.
private_apt() {
	local w=$1 arch keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	arch=$(dpkg --print-architecture)
	mkdir -p "$w"/{parts,lists/partial,cache/archives/partial,log}
	: >"$w/status"
	echo "deb [signed-by=$keyring arch=$arch] $2 $suite main" >"$w/sources"
	{
		apt-config dump 2>/dev/null | grep -E '^Acquire::https?::' || true # the host's proxies
		cat <<-END
			Dir::State "$w"; Dir::State::lists "$w/lists"; Dir::State::status "$w/status";
			Dir::Cache "$w/cache"; Dir::Log "$w/log";
			Dir::Etc::sourcelist "$w/sources"; Dir::Etc::sourceparts "/dev/null"; Dir::Etc::parts "$w/parts"; Dir::Etc::main "/dev/null";
			Dir::Etc::preferences "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
			Dir::Etc::trusted "/dev/null"; Dir::Etc::trustedparts "/dev/null";
			APT::Architecture "$arch"; APT::Architectures { "$arch"; };
			APT::Install-Recommends "false"; APT::Install-Suggests "false"; APT::Sandbox::User "root";
			Acquire::Languages "none"; Acquire::AllowInsecureRepositories "false"; Acquire::Check-Valid-Until "$3";
		END
	} >"$w/apt.conf"
}

# An expired index still has a valid signature, but may be an old one in a replay attack.
# That is acceptable for packages whose checksums are in criu.sha256.
download() {
	local w=$1 m=$2 valid
	for valid in true false; do
		private_apt "$w" "$m" $valid
		if APT_CONFIG="$w/apt.conf" apt-get -q update >"$w/log/update" 2>&1 && ! grep -q '^[WE]:' "$w/log/update" &&
			APT_CONFIG="$w/apt.conf" apt-get -q -y --download-only install criu >"$w/log/install" 2>&1; then
			(cd "$w/cache/archives" && sha256sum -- *.deb) >"$w/SHA256SUMS"
			[ $valid = true ] || known "$w/SHA256SUMS"
			return
		fi
		rm -rf "$w/lists" "$w/cache"
	done
	return 1
}

known() {
	local sum name
	while read -r sum name; do
		grep -qF "$sum  $name" "$here/criu.sha256" || {
			say "$name of an index past its date is not in criu.sha256."
			return 1
		}
	done <"$1"
}

install_private() (
	w=$(mktemp -d)
	new="$prefix.new"
	trap 'rm -rf "$w" "$new"' EXIT
	m=$(mirror)
	[ -n "$m" ] || { say "apt knows no mirror of Debian."; exit 1; }
	say "unpacking Debian $suite's criu into $prefix"
	download "$w" "$m" || { tail -n 3 "$w/log/update" "$w/log/install" >&2 2>/dev/null; exit 1; }
	rm -rf "$new"
	mkdir -p "$new/root" "$new/bin"
	for deb in "$w"/cache/archives/*.deb; do
		case ${deb##*/} in perl* | debconf_* | cdebconf*) continue ;; esac # only needed to configure packages
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$new/root" --no-same-owner --keep-directory-symlink \
			--exclude='./usr/share/*' --exclude='./etc/*' --exclude='./var/*'
	done
	cp "$w/SHA256SUMS" "$new/"
	loader=$(cd "$new/root" && find . -name 'ld-linux*.so.*' | sed 's,^\./,,' | head -n 1)
	libraries=$(cd "$new/root" && find usr/lib lib -maxdepth 1 -name '*-linux-gnu*' 2>/dev/null | sed "s,^,$prefix/root/," | paste -sd : || true)
	[ -n "$loader" ] && [ -n "$libraries" ] && [ -x "$new/root/usr/sbin/criu" ] || { say "the packages hold no criu."; exit 1; }
	# The dynamic loader is named explicitly, so that only this program uses the newer C
	# library.
	cat >"$new/bin/criu" <<-END
		#!/bin/sh
		exec $prefix/root/$loader --library-path $libraries --argv0 criu $prefix/root/usr/sbin/criu "\$@"
	END
	chmod 755 "$new/bin/criu"
	rm -rf "$prefix"
	mv "$new" "$prefix"
	[ "${1:-}" = unpack ] || works "$prefix/bin/criu"
)

# "find" installs nothing; testing needs root, as checkpoints do.
if [ "$(id -u)" -ne 0 ] && [ "${1:-}" != unpack ]; then
	[ "${1:-}" != find ] || exit 1
	give_up "only root can test and install it."
fi
mkdir -p "$(dirname "$prefix")" 2>/dev/null || give_up "$(dirname "$prefix") cannot be made."
{ exec 9>"$prefix.lock"; } 2>/dev/null || give_up "$prefix.lock cannot be written."
flock 9
if [ "${1:-}" = find ]; then
	found
	exit
fi
if [ "${1:-}" = unpack ]; then
	[ -x "$prefix/bin/criu" ] || install_private unpack
	exit
fi
! found >/dev/null || exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
	give_up "there is none that works, and this is no Debian. Install CRIU 4.2 or newer."
install_package || install_private || give_up "none could be installed that works on Linux $(uname -r)."
