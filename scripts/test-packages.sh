#!/usr/bin/env bash
# Installs, upgrades, removes and purges the Debian packages in bare Debian roots, which
# it makes below build/, and runs a pool from the installed files there. Called by make
# test-packages, which sets PACKAGE. Needs root and debootstrap.
#
# SUITES names the releases (bookworm trixie). PACKAGE_BUILT=1 takes the programs that are
# already built.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "test-packages: it needs root" >&2 && exit 77; }
command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap >/dev/null
# the archive that this machine itself installs from
mirror=${MIRROR:-$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -n 1)}
base=build/debian
work=$(mktemp -d "$PWD/build/test-packages.XXXXXX")
failed=0
pool=

clean() {
	[ -z "$pool" ] || kill "$pool" 2>/dev/null || true
	sleep 1
	for mount in $(awk -v w="$work" 'index($2, w) == 1 { print $2 }' /proc/mounts | sort -r); do umount "$mount"; done
	rm -rf --one-file-system "$work"
}
trap clean EXIT

bad() { echo "FAIL $*" && failed=1; }
same() { [ "$2" = "$3" ] || bad "$1: got $2, want $3"; }

# build VERSION DIRECTORY FORMAT... makes packages of a version.
build() {
	local version=$1 dist=$2
	shift 2
	env PACKAGE_VERSION="$version" DIST="$dist" bash -c "$PACKAGE $*" >/dev/null
}

test_reproducible() {
	build 0.1.0~2 "$work/new" deb rpm tar
	(cd "$work/new" && sha256sum --quiet -c SHA256SUMS) || bad "SHA256SUMS"
	PACKAGE_BUILT=1 build 0.1.0~2 "$work/again" deb rpm tar
	cmp "$work/new/SHA256SUMS" "$work/again/SHA256SUMS" || bad "two builds differ"
	PACKAGE_BUILT=1 build 0.1.0~1 "$work/old" deb
}

test_units() {
	local unit limit exposure root=$1
	while read -r unit limit; do
		exposure=$(systemd-analyze security --offline=true --root="$root" --no-pager "$unit" 2>/dev/null |
			sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p')
		awk -v e="${exposure:-99}" -v l="$limit" 'BEGIN { exit !(e <= l) }' || bad "$unit: exposure $exposure, at most $limit"
		echo "unit $unit: exposure $exposure"
	done <<-END
		roost-guard.service 2
		roost-web.service 2
		roost-cell-checkpoint.service 4
		roost.service 9.4
	END
	mkdir -p "$root/etc/systemd/system/roost.service.d"
	cp "$root/usr/share/doc/roost-node/examples/central.conf" "$root/etc/systemd/system/roost.service.d/"
	exposure=$(systemd-analyze security --offline=true --root="$root" --no-pager roost.service 2>/dev/null |
		sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p')
	awk -v e="${exposure:-99}" 'BEGIN { exit !(e <= 4) }' || bad "roost.service with central.conf: exposure $exposure"
	echo "unit roost.service with central.conf: exposure $exposure"
	rm -r "$root/etc/systemd/system/roost.service.d"
	systemd-analyze verify --root="$root" --man=no \
		roost.service roost-guard.service roost-web.service roost-cell-checkpoint.timer 2>&1 |
		grep -i roost >"$work/verify" || true
	[ ! -s "$work/verify" ] || { cat "$work/verify" && bad "systemd-analyze verify"; }
}

# test_pool ROOT is what a person does: a pool in two commands, and a job.
test_pool() {
	local root=$1 i
	cat >"$work/pool.sh" <<-'END'
		set -e
		roost init --server --name trial --address 127.0.0.1 --no-start
		roost master --config /etc/roost/node.hcl &
		echo $! >/run/trial.pid
		for i in $(seq 300); do roost nodes 2>/dev/null | grep -q . && break; sleep 0.2; done
		su - ann -c 'cd /home/ann && roost run -- sh -c "echo hello from \$(id -un)"'
	END
	cp "$work/pool.sh" "$root/run/pool.sh"
	chroot "$root" sh /run/pool.sh >"$work/pool.out" 2>"$work/pool.err" || bad "pool: $(tail -5 "$work/pool.err")"
	grep -q 'hello from ann' "$work/pool.out" || bad "pool: no output of the job: $(tail -5 "$work/pool.err")"
	echo "pool: $(grep hello "$work/pool.out" || true)"
	pool=$(cat "$root/run/trial.pid")
}

stop_pool() {
	kill "$pool"
	for _ in $(seq 100); do kill -0 "$pool" 2>/dev/null || break; sleep 0.1; done
	pool=
}

test_suite() {
	local suite=$1 root=$work/$1 before
	echo "== Debian $suite"
	if [ ! -e "$base/$suite.tar" ]; then
		mkdir -p "$base"
		debootstrap --variant=minbase "$suite" "$work/fresh" "$mirror" >/dev/null
		tar -C "$work/fresh" -cf "$base/$suite.tar" .
		rm -rf --one-file-system "$work/fresh"
	fi
	mkdir "$root"
	tar -C "$root" -xf "$base/$suite.tar"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mount --make-rslave "$root/dev"
	mount -t tmpfs tmpfs "$root/run"
	chroot "$root" useradd -m ann
	mkdir "$root/packages"
	cp "$work"/old/*.deb "$work"/new/*.deb "$root/packages/"
	apt() { chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends "$@" >"$work/apt" 2>&1 ||
		{ tail -20 "$work/apt" && bad "apt-get $*"; }; }
	apt update
	apt install systemd bash-completion
	before=$(cd "$root" && find etc usr var/lib/roost -xdev 2>/dev/null | sort)

	apt install $(cd "$root" && ls packages/*0.1.0~1_*.deb | grep -v -e slurm -e condor | sed 's|^|/|')
	same "version" "$(chroot "$root" dpkg-query -W -f '${Version}' roost-node)" 0.1.0~1
	same "/var/lib/roost" "$(stat -c '%a %U:%G' "$root/var/lib/roost")" "711 root:root"
	same "/etc/roost" "$(stat -c '%a %U:%G' "$root/etc/roost")" "755 root:root"
	chroot "$root" id roost-web >/dev/null || bad "there is no account roost-web"
	same "programs" "$(stat -c '%a' "$root"/usr/lib/roost/* | sort -u)" 755
	chroot "$root" roost version >/dev/null || bad "roost version"
	chroot "$root" qstat --help >/dev/null || bad "qstat --help"
	for page in roost.1 roost-guard.8 qsub.1 roost-web.8; do
		[ -e "$root/usr/share/man/man${page##*.}/$page.gz" ] || bad "there is no page $page"
	done
	chroot "$root" sh -c 'cd / && for p in $(dpkg-query -W -f "\${Package} " "roost*"); do dpkg -V $p; done' || bad "dpkg -V"
	test_units "$root"
	test_pool "$root"

	echo "# changed" >>"$root/etc/pam.d/roost"
	apt install $(cd "$root" && ls packages/*0.1.0~2_*.deb | grep -v -e slurm -e condor | sed 's|^|/|')
	same "version" "$(chroot "$root" dpkg-query -W -f '${Version}' roost-node)" 0.1.0~2
	grep -q '# changed' "$root/etc/pam.d/roost" || bad "an upgrade replaced /etc/pam.d/roost"
	chroot "$root" su - ann -c 'roost run -- echo again' | grep -q again || bad "no job runs after the upgrade"
	chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y remove 'roost*' >"$work/apt" 2>&1 &&
		bad "removed under a running master"
	stop_pool
	apt remove 'roost*'
	[ -d "$root/var/lib/roost/authority" ] || bad "removal deleted /var/lib/roost"
	apt purge 'roost*'
	grep -q 'removing /var/lib/roost' "$work/apt" || bad "purge does not say what it deletes"
	(cd "$root" && find etc usr var/lib/roost -xdev 2>/dev/null | sort) | diff <(echo "$before") - |
		grep -v -e '/__pycache__' -e 'etc/[a-z]*-$' -e '\.cache$' | grep '^[<>]' >"$work/left" || true
	[ ! -s "$work/left" ] || { cat "$work/left" && bad "purge leaves files"; }
	! grep -q roost "$root/etc/passwd" "$root/etc/group" || bad "purge leaves an account"
}

mkdir -p build
test_reproducible
if command -v rpm >/dev/null; then
	rpm -qpl "$work"/new/roost-node-0*.rpm 2>/dev/null | grep -qx /usr/lib/roost/roost-daemon || bad "rpm: no roost-daemon"
	rpm -qp --requires "$work"/new/roost-node-0*.rpm 2>/dev/null | grep -q '^roost = ' || bad "rpm: no dependency on roost"
fi
if command -v lintian >/dev/null && [ -n "${LINTIAN:-1}" ]; then
	lintian --allow-root --fail-on error,warning "$work"/new/*.deb || bad "lintian"
fi
for suite in ${SUITES:-bookworm trixie}; do test_suite "$suite"; done
[ $failed = 0 ] && echo "packages: all well"
exit $failed
