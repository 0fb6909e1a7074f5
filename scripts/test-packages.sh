#!/usr/bin/env bash
# Installs, upgrades, removes and purges the Debian packages in bare Debian roots, which
# it makes below build/, and runs a pool from the installed files there. The RPM packages
# are installed, upgraded and removed in the first of these roots. Called by make
# test-packages, which sets PACKAGE. Needs root and debootstrap.
#
# SUITES names the releases (bookworm trixie). PACKAGE_BUILT=1 takes the programs that are
# already built, and so does not compare two builds of them.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "test-packages: it needs root" >&2 && exit 77; }
command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap >/dev/null
# the archive that this machine itself installs from
mirror=${MIRROR:-$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -n 1)}
base=build/debian
work=$(mktemp -d "$PWD/build/.test-packages.XXXXXX") # hidden from the tests of the source tree
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

# test_reproducible builds twice, the second time from a copy of the sources elsewhere.
test_reproducible() {
	local copy=$work/.copy/of/the/sources # hidden from the tests of the source tree
	build 0.1.0~2 "$work/new" deb rpm tar
	(cd "$work/new" && sha256sum --quiet -c SHA256SUMS) || bad "SHA256SUMS"
	mkdir -p "$copy"
	git clone -q --shared --no-checkout . "$copy"
	git ls-files -co --exclude-standard -z | tar --null -T - -c --ignore-failed-read 2>/dev/null | tar -C "$copy" -x
	mkdir -p "$copy/build"
	ln -s "$PWD/build/tools" "$copy/build/tools"
	if [ -n "${PACKAGE_BUILT:-}" ]; then cp -a build/package "$copy/build/"; fi
	(cd "$copy" && build 0.1.0~2 "$work/again" deb rpm tar)
	diff "$work/new/SHA256SUMS" "$work/again/SHA256SUMS" || bad "two builds differ"
	rm -rf "$copy" "$work/again"
	DEB_COMPRESSION=none PACKAGE_BUILT=1 build 0.1.0~1 "$work/old" deb rpm
	change_conffile "$work"/old/roost-web_*.deb
}

# change_conffile FILE gives a package a configuration file that the next version changes.
change_conffile() {
	local sum
	dpkg-deb -R "$1" "$work/web"
	echo "# of the version before" >>"$work/web/etc/pam.d/roost"
	sum=$(md5sum "$work/web/etc/pam.d/roost" | cut -d ' ' -f 1)
	sed -i "s|^[0-9a-f]*  etc/pam.d/roost$|$sum  etc/pam.d/roost|" "$work/web/DEBIAN/md5sums"
	dpkg-deb --root-owner-group -b "$work/web" "$1" >/dev/null
	rm -r "$work/web"
}

test_units() {
	local unit limit exposure root=$1
	while read -r unit limit; do
		exposure=$(systemd-analyze security --offline=true --root="$root" --no-pager "$unit" 2>/dev/null |
			sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p' || true)
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
		sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p' || true)
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
	# a network of its own, as the ports may be in use here
	unshare --net sh -c 'ip link set lo up && exec chroot "$0" sh /run/pool.sh' "$root" \
		>"$work/pool.out" 2>"$work/pool.err" || bad "pool: $(tail -5 "$work/pool.err")"
	grep -q 'hello from ann' "$work/pool.out" || bad "pool: no output of the job: $(tail -5 "$work/pool.err")"
	echo "pool: $(grep hello "$work/pool.out" || true)"
	pool=$(cat "$root/run/trial.pid")
}

stop_pool() {
	kill "$pool"
	for _ in $(seq 100); do kill -0 "$pool" 2>/dev/null || break; sleep 0.1; done
	pool=
}

# list ROOT prints what is in a root, of which /var/lib/roost may be missing.
list() { (cd "$1" && find etc usr var/lib/roost -xdev 2>/dev/null || true) | sort; }

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
	apt install systemd bash-completion python3
	before=$(list "$root")

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
	verify "$root"
	test_completion "$root"
	test_units "$root"
	test_pool "$root"
	test_bindings "$root"

	echo "# changed" >>"$root/etc/pam.d/roost"
	apt -o Dpkg::Options::=--force-confold install $(cd "$root" && ls packages/*0.1.0~2_*.deb | sed 's|^|/|')
	same "version" "$(chroot "$root" dpkg-query -W -f '${Version}' roost-node)" 0.1.0~2
	grep -q '# changed' "$root/etc/pam.d/roost" || bad "an upgrade replaced /etc/pam.d/roost"
	[ -e "$root/etc/pam.d/roost.dpkg-dist" ] || bad "an upgrade does not show the new /etc/pam.d/roost"
	chroot "$root" su - ann -c 'roost run -- echo again' | grep -q again || bad "no job runs after the upgrade"
	chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y remove 'roost*' >"$work/apt" 2>&1 &&
		bad "removed under a running master"
	stop_pool
	apt remove 'roost*'
	[ -d "$root/var/lib/roost/authority" ] || bad "removal deleted /var/lib/roost"
	apt purge 'roost*'
	grep -q 'removing /var/lib/roost' "$work/apt" || bad "purge does not say what it deletes"
	list "$root" | diff <(echo "$before") - |
		grep -v -e '/__pycache__' -e 'etc/[a-z]*-$' -e '\.cache$' | grep '^[<>]' >"$work/left" || true
	[ ! -s "$work/left" ] || { cat "$work/left" && bad "purge leaves files"; }
	! grep -q roost "$root/etc/passwd" "$root/etc/group" || bad "purge leaves an account"
}

# verify ROOT holds the installed files against the packages.
verify() {
	chroot "$1" sh -c 'cd / && dpkg-query -W -f "\${db:Status-Abbrev} \${Package}\n" "roost*" python3-roost |
		sed -n "s/^ii *//p" | while read -r p; do dpkg -V "$p" </dev/null; done' >"$work/changed" 2>&1 || bad "dpkg -V"
	[ ! -s "$work/changed" ] || { cat "$work/changed" && bad "dpkg -V"; }
}

# test_completion ROOT asks the shell what it completes with the installed file.
test_completion() {
	chroot "$1" bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader roost; complete -p roost' \
		>"$work/complete" 2>&1 || bad "completion: $(cat "$work/complete")"
}

# test_bindings ROOT has the Python package and the library of DRMAA speak with the pool.
test_bindings() {
	cat >"$1/run/drmaa.py" <<-'END'
		import ctypes
		drmaa = ctypes.CDLL("libdrmaa.so.1")
		text, error = ctypes.create_string_buffer(1024), ctypes.create_string_buffer(1024)
		assert drmaa.drmaa_init(None, error, 1024) == 0, error.value
		assert drmaa.drmaa_get_DRM_system(text, 1024, error, 1024) == 0, error.value
		assert drmaa.drmaa_exit(error, 1024) == 0, error.value
		print("drmaa:", text.value.decode())
		import roost
		print("python:", roost.__version__)
	END
	chroot "$1" su - ann -c 'python3 /run/drmaa.py' >"$work/bindings" 2>&1 || bad "bindings: $(tail -3 "$work/bindings")"
	cat "$work/bindings"
}

# test_rpm ROOT installs, upgrades and removes the RPM packages, whose dependencies this
# system names otherwise.
test_rpm() {
	local root=$1 p
	in_root() { rpm --root "$root" --dbpath /var/lib/rpm-test --force-debian "$@" 2>>"$work/rpm"; }
	for p in "$work"/new/*.rpm; do
		rpm -qp --requires "$p" 2>/dev/null | grep -v -e '^roost\(-[a-z]*\)\? = 0.1.0~2' -e '^libc\.so\.6(' -e '^systemd$' \
			-e '^/bin/sh$' -e '^rpmlib(' >"$work/requires" || true
		[ ! -s "$work/requires" ] || bad "rpm: ${p##*/} requires $(cat "$work/requires")"
	done
	: >"$work/rpm"
	in_root --nodeps -i "$work"/old/*.rpm || bad "rpm -i"
	same "rpm: /var/lib/roost" "$(stat -c '%a %U:%G' "$root/var/lib/roost")" "711 root:root"
	chroot "$root" id roost-web >/dev/null || bad "rpm: there is no account roost-web"
	chroot "$root" roost version >/dev/null || bad "rpm: roost version"
	for p in $(in_root -qa); do in_root -V --nodeps "$p" || bad "rpm -V $p"; done
	echo "# changed" >>"$root/etc/pam.d/roost"
	mkdir -p "$root/var/lib/roost/schedd"
	in_root --nodeps -U "$work"/new/*.rpm || bad "rpm -U"
	grep -q '# changed' "$root/etc/pam.d/roost" || bad "rpm: an upgrade replaced /etc/pam.d/roost"
	same "rpm: packages" "$(in_root -qa | grep -c '0.1.0~2')" "$(ls "$work"/new/*.rpm | wc -l)"
	in_root --nodeps -e $(in_root -qa) || bad "rpm -e"
	[ -d "$root/var/lib/roost/schedd" ] || bad "rpm: removal deleted /var/lib/roost"
	[ ! -e "$root/usr/lib/roost" ] || bad "rpm: removal leaves $(ls "$root/usr/lib/roost")"
	[ ! -s "$work/rpm" ] || cat "$work/rpm"
}

mkdir -p build
test_reproducible
if command -v lintian >/dev/null && [ -n "${LINTIAN-1}" ]; then
	lintian --allow-root --fail-on error,warning "$work"/new/*.deb || bad "lintian"
fi
for suite in ${SUITES:-bookworm trixie}; do
	test_suite "$suite"
	if command -v rpm >/dev/null && [ ! -e "$work/rpm" ]; then test_rpm "$work/$suite"; fi
done
[ $failed = 0 ] && echo "packages: all well"
exit $failed
