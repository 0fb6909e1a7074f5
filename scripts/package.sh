#!/usr/bin/env bash
# Builds packages into build/dist/. Called by make, which sets PBS, PBS_LOCAL, SLURM and
# SLURM_LOCAL. Arguments: deb, rpm, tar, image. The same commit gives the same bytes.
#
# GOARCH chooses the processor. PACKAGE_VERSION and SOURCE_DATE_EPOCH replace what the
# commit says. DEB_COMPRESSION=none saves time in tests. scripts/package/ has the
# description and the scripts of each package.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC

GO=${GO:-go}
nfpm_version=v2.45.2
arch=${GOARCH:-$($GO env GOARCH)}
work=build/package/$arch
compression=${DEB_COMPRESSION:-gzip}
dist=${DIST:-build/dist}
maintainer='Roost <roost-batch@users.noreply.github.com>'
packages=(roost roost-node roost-desktop roost-web roost-accountant roost-sim roost-pbs roost-slurm roost-condor
	roost-drmaa roost-drmaa-dev python3-roost)

# What Debian calls the processor, in names of directories and compilers.
case $arch in
amd64) triplet=x86_64-linux-gnu ;;
arm64) triplet=aarch64-linux-gnu ;;
riscv64) triplet=riscv64-linux-gnu ;;
*) triplet=$arch-linux-gnu ;;
esac

in_git() { git rev-parse --git-dir >/dev/null 2>&1; }

# A commit that has no tag sorts before the release that it leads to.
version() {
	local release
	release=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' version.go)
	if ! in_git || [ "$(git describe --exact-match --tags --match "v$release" 2>/dev/null)" = "v$release" ]; then
		echo "$release"
	else
		echo "$release~$(git rev-list --count HEAD).$(git rev-parse --short=8 HEAD)"
	fi
}
VERSION=${PACKAGE_VERSION:-$(version)}
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
	SOURCE_DATE_EPOCH=$(in_git && git log -1 --format=%ct || stat -c %Y version.go)
fi
export SOURCE_DATE_EPOCH

# The tool has a go.mod of its own, with twenty modules that no program here needs.
nfpm=$PWD/build/tools/nfpm-$nfpm_version
get_nfpm() {
	[ -x "$nfpm" ] && return
	local bin
	bin=$(mktemp -d)
	env -u GOARCH GOFLAGS= CGO_ENABLED=0 GOBIN="$bin" \
		$GO install "github.com/goreleaser/nfpm/v2/cmd/nfpm@$nfpm_version"
	mkdir -p build/tools
	mv "$bin/nfpm" "$nfpm"
	rmdir "$bin"
}

# A C compiler for the processor gives GPUs, and users of directories that NSS alone knows.
set_compiler() {
	CGO=1
	CC=${CC:-$(env -u GOARCH $GO env CC)}
	export CC
	if [ "$arch" = "$(env -u GOARCH $GO env GOHOSTARCH)" ]; then
		command -v "$CC" >/dev/null || CGO=0
		return
	fi
	if command -v "$triplet-gcc" >/dev/null; then
		CC=$triplet-gcc
	else
		CGO=0
		echo "package: without $triplet-gcc the daemons for $arch know no GPUs, and no users that only NSS knows;" \
			"roost-pam and roost-drmaa are not built" >&2
	fi
}

build_programs() {
	local bin=$work/bin
	mkdir -p "$bin"
	set_compiler
	compile() {
		local cgo=$1
		shift
		CGO_ENABLED=$cgo GOARCH=$arch $GO build -buildvcs=false -ldflags '-s -w -buildid=' -o "$bin/" "$@"
	}
	compile 0 ./cmd/roost ./cmd/roost-q ./cmd/roost-sim ./cmd/roost-accountant ./cmd/roost-starter ./cmd/roost-ranks
	compile "$CGO" ./cmd/roost-daemon ./cmd/roost-negotiator ./cmd/roost-node ./cmd/roost-web
	rm -f "$bin"/roost-pam "$bin"/libdrmaa.so*
	[ "$CGO" = 1 ] || return 0
	LDFLAGS=-s scripts/drmaa.sh "$bin"
	if [ -e /usr/include/security/pam_appl.h ] && [ -e "$("$CC" -print-file-name=libpam.so)" ]; then
		compile 1 -tags "pam,$LEAN" ./cmd/roost-pam
	else
		echo "package: without libpam and its headers for $arch the schedd checks no passwords (libpam0g-dev)" >&2
	fi
}

# put MODE FILE PACKAGE PATH copies a file into the tree of a package.
put() { install -D -m "$1" "$2" "$work/tree/$3/$4"; }
program() { [ ! -e "$work/bin/$1" ] || put 755 "$work/bin/$1" "$2" "usr/lib/roost/$1"; }
link() {
	mkdir -p "$work/tree/$2/usr/bin"
	ln -sfn "../lib/roost/$3" "$work/tree/$2/usr/bin/$1"
}
unit() {
	put 644 "$1" "$2" "usr/lib/systemd/system/$(basename "$1")"
	sed -i 's|/usr/local/bin|/usr/bin|g' "$work/tree/$2/usr/lib/systemd/system/$(basename "$1")"
}

# choose_package PAGE sets p to the package that has a page of the manual.
choose_package() {
	p=
	case " $SLURM $SLURM_LOCAL " in *" ${1%.*} "*) p=roost-slurm ;; esac
	case " $PBS $PBS_LOCAL " in
	*" ${1%.*} "*) case $1 in condor_*) p=roost-condor ;; *) p=roost-pbs ;; esac ;;
	esac
	[ -z "$p" ] || return 0
	case $1 in
	roost-accountant.8 | roost-accounting.1) p=roost-accountant ;;
	roost-sim.1) p=roost-sim ;;
	roost-web.8) p=roost-web ;;
	roost-guard.8 | roost-session-agent.1) p=roost-desktop ;;
	roost-drmaa.7) p=roost-drmaa-dev ;;
	*.8) p=roost-node ;;
	*) p=roost ;;
	esac
}

fill_trees() {
	local p page sample q
	rm -rf "$work/tree"
	for p in roost roost-q roost-node; do program $p roost; done
	for p in roost-daemon roost-negotiator roost-starter roost-ranks roost-pam; do program $p roost-node; done
	program roost-web roost-web
	program roost-accountant roost-accountant
	program roost-sim roost-sim
	link roost roost roost
	for q in $PBS; do
		case $q in condor_*) link "$q" roost-condor roost ;; *) link "$q" roost-pbs roost ;; esac
	done
	for q in $PBS_LOCAL; do link "$q" roost-pbs roost-q; done
	for q in $SLURM; do link "$q" roost-slurm roost; done
	for q in $SLURM_LOCAL; do link "$q" roost-slurm roost-q; done
	for page in man/*.[1-8]; do
		q=${page##*/}
		choose_package "$q"
		put 644 "$page" "$p" "usr/share/man/man${q##*.}/$q"
	done
	find "$work"/tree/*/usr/share/man -type f -exec gzip -9nf {} +
	put 644 etc/completion/roost.bash roost usr/share/bash-completion/completions/roost
	put 644 etc/completion/roost.zsh roost usr/share/zsh/vendor-completions/_roost
	put 644 etc/completion/roost.fish roost usr/share/fish/vendor_completions.d/roost.fish
	for sample in $(cd etc && find accounts demo flows jobs python sim snakemake -type f | sort); do
		put "$([ -x "etc/$sample" ] && echo 755 || echo 644)" "etc/$sample" roost "usr/share/doc/roost/examples/$sample"
	done
	for sample in $(cd etc && find apparmor nodes prometheus pilots -type f | sort); do
		put 644 "etc/$sample" roost-node "usr/share/doc/roost-node/examples/$sample"
	done
	for sample in Caddyfile nginx.conf; do
		put 644 "etc/web/$sample" roost-web "usr/share/doc/roost-web/examples/$sample"
	done
	put 644 README.md roost usr/share/doc/roost/README.md
	put 644 etc/owner.hcl roost-desktop usr/share/doc/roost-desktop/examples/owner.hcl
	put 644 etc/autostart/roost-session-agent.desktop roost-desktop etc/xdg/autostart/roost-session-agent.desktop
	put 644 etc/web/roost.pam roost-web etc/pam.d/roost
	put 644 etc/systemd/roost.sysusers roost-web usr/lib/sysusers.d/roost-web.conf
	put 644 etc/systemd/roost.tmpfiles roost-node usr/lib/tmpfiles.d/roost-node.conf
	unit etc/systemd/roost.service roost-node
	put 644 etc/systemd/central.conf roost-node usr/share/doc/roost-node/examples/central.conf
	unit etc/systemd/roost-guard.service roost-desktop
	unit etc/systemd/roost-web.service roost-web
	unit etc/web/roost-cell-checkpoint.service roost-web
	unit etc/web/roost-cell-checkpoint.timer roost-web
	mkdir -p "$work/tree/roost-node/etc/roost"
	if command -v python3 >/dev/null; then
		mkdir -p "$work/tree/roost/usr/share/roost"
		python3 scripts/wheel.py "$work/tree/roost/usr/share/roost" >/dev/null
		chmod 644 "$work"/tree/roost/usr/share/roost/*.whl
	fi
	fill_drmaa
	fill_python
	for p in "${packages[@]}"; do fill_doc "$p"; done
}

# fill_drmaa fills the packages of the C library. Without a C compiler there are none.
fill_drmaa() {
	if [ ! -e "$work/bin/libdrmaa.so.1" ]; then
		rm -rf "$work/tree/roost-drmaa-dev"
		packages=($(printf '%s\n' "${packages[@]}" | grep -v '^roost-drmaa'))
		return
	fi
	put 644 "$work/bin/libdrmaa.so.1" roost-drmaa "usr/lib/$triplet/libdrmaa.so.1"
	put 644 internal/drmaa/drmaa.h roost-drmaa-dev usr/include/drmaa.h
	mkdir -p "$work/tree/roost-drmaa-dev/usr/lib/$triplet"
	ln -sfn libdrmaa.so.1 "$work/tree/roost-drmaa-dev/usr/lib/$triplet/libdrmaa.so"
}

# fill_python unpacks the wheel to where Debian's Python finds it. RPM systems have no
# place that is the same for all versions of Python: the wheel is in the package roost.
fill_python() {
	local wheel
	wheel=$(compgen -G "$work/tree/roost/usr/share/roost/*.whl") || true
	if [ -z "$wheel" ]; then
		packages=($(printf '%s\n' "${packages[@]}" | grep -v '^python3-roost$'))
		return
	fi
	mkdir -p "$work/tree/python3-roost/usr/lib/python3/dist-packages"
	python3 -m zipfile -e "$wheel" "$work/tree/python3-roost/usr/lib/python3/dist-packages"
	chmod -R u=rwX,go=rX "$work/tree/python3-roost"
}

# fill_doc PACKAGE adds what each package says of itself.
fill_doc() {
	local doc=$work/tree/$1/usr/share/doc/$1
	put 644 scripts/package/copyright "$1" "usr/share/doc/$1/copyright"
	{
		echo "roost ($VERSION) unstable; urgency=medium"
		echo
		if in_git; then git log -40 --no-merges --format='%s'; else echo "Release $VERSION."; fi |
			cut -c1-76 | sed 's/^/  * /'
		printf '\n -- %s  %s\n' "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")"
	} | gzip -9n >"$doc/changelog.gz"
	[ ! -e "scripts/package/$1.overrides" ] ||
		put 644 "scripts/package/$1.overrides" "$1" "usr/share/lintian/overrides/$1"
	if compgen -G "$work/tree/$1/usr/lib/roost/*" >/dev/null; then
		build/tools/sbom -notices "$doc/third-party-licenses" "$work/tree/$1"/usr/lib/roost/*
		gzip -9nf "$doc/third-party-licenses"
	fi
}

# libc_needed PACKAGE says which version of the C library the programs of a package need.
libc_needed() {
	local f
	for f in "$work/tree/$1"/usr/lib/roost/* "$work/tree/$1"/usr/lib/*-linux-gnu/*.so.*; do
		[ ! -e "$f" ] || readelf -W --dyn-syms "$f" 2>/dev/null
	done | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -V | tail -1 || true
}

# description PACKAGE FORMAT writes the configuration of nfpm.
description() {
	local libc needs= path machine=$arch section=science
	case $1 in
	python3-roost) machine=all section=python ;;
	roost-drmaa) section=libs ;;
	roost-drmaa-dev) section=libdevel ;;
	esac
	libc=$(libc_needed "$1")
	[ -z "$libc" ] || case $2 in
	deb) needs="libc6 (>= $libc)" ;;
	rpm) needs="libc.so.6(GLIBC_$libc)(64bit)" ;;
	esac
	sed -e "s|@VERSION@|$VERSION|g" -e "s|@LIBC@|$needs|g" -e "s|@COMPRESSION@|$compression|g" -e '/^ *- *$/d' "scripts/package/$1.yaml"
	cat <<-END
		arch: $machine
		platform: linux
		version: $VERSION
		version_schema: none
		maintainer: $maintainer
		vendor: Roost
		homepage: https://github.com/roost-batch/roost
		license: Apache-2.0
		section: $section
		priority: optional
		mtime: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
		rpm:
		  buildhost: localhost
		  compression: zstd
	END
	# what a package says of the format itself stands in its description
	grep -q '^deb:' "scripts/package/$1.yaml" || printf 'deb:\n  compression: %s\n' "$compression"
	echo contents:
	(cd "$work/tree/$1" && find . -mindepth 1 | LC_ALL=C sort) | while read -r path; do
		path=${path#.}
		entry "$1" "$path" "$2"
	done
}

# entry PACKAGE PATH FORMAT writes one file of a package for nfpm. Zsh and lintian have
# places and files that Debian alone knows.
entry() {
	local src=$PWD/$work/tree/$1$2 dst=$2
	if [ "$3" = rpm ]; then
		case $dst in
		*/lintian*) return ;;
		/usr/share/zsh/vendor-completions/*) dst=/usr/share/zsh/site-functions/${dst##*/} ;;
		/usr/lib/*-linux-gnu) return ;;
		/usr/lib/*-linux-gnu/*) dst=/usr/lib64/${dst##*/} ;;
		esac
	fi
	if [ -L "$src" ]; then
		printf -- '- {src: "%s", dst: "%s", type: symlink}\n' "$(readlink "$src")" "$dst"
	elif [ -d "$src" ]; then
		case $dst in
		/usr/lib/roost | /usr/share/doc/*/* | /usr/share/doc/roost* | /usr/share/roost | /etc/roost)
			printf -- '- {dst: "%s", type: dir, file_info: {mode: 0755}}\n' "$dst" ;;
		esac
	else
		local type=
		case $dst in /etc/*) type=', type: config|noreplace' ;; esac
		printf -- '- {src: "%s", dst: "%s"%s, file_info: {mode: 0%s}}\n' "$src" "$dst" "$type" "$(stat -c %a "$src")"
	fi
}

make_packages() {
	local p config
	get_nfpm
	for p in "${packages[@]}"; do
		[ "$p.$1" != python3-roost.rpm ] || continue
		config=$work/$p.$1.yaml
		description "$p" "$1" >"$config"
		"$nfpm" package --config "$config" --packager "$1" --target "$dist/" >"$work/nfpm" ||
			{ cat "$work/nfpm" >&2 && exit 1; } # it prints errors there, too
	done
}

make_tar() {
	local name=roost-$VERSION-linux-$arch
	rm -rf "$work/tar"
	mkdir -p "$work/tar/$name/bin"
	cp -a "$work"/bin/* "$work/tar/$name/bin/"
	cp -a man etc LICENSE README.md "$work/tar/$name/"
	rm -f "$work/tar/$name"/{man,etc}/*.go
	tar -C "$work/tar" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
		--mode=u=rwX,go=rX -c "$name" | gzip -9n >"$dist/$name.tar.gz"
}

# make_image writes an image of a central manager. Its programs need no C library, so
# there is nothing else in it.
make_image() {
	local tree=$work/image p tag=${VERSION//\~/-} # a tag has no tilde
	if [ -z "${PACKAGE_BUILT:-}" ]; then
		mkdir -p "$work/static"
		CGO_ENABLED=0 GOARCH=$arch $GO build -buildvcs=false -ldflags '-s -w -buildid=' -o "$work/static/" \
			./cmd/roost ./cmd/roost-daemon ./cmd/roost-negotiator ./cmd/roost-node ./cmd/roost-web ./cmd/roost-accountant
	fi
	env -u GOARCH CGO_ENABLED=0 "$GO" build -o build/tools/ociimage ./scripts/ociimage
	rm -rf "$tree"
	install -d -m 755 "$tree"/etc/roost "$tree"/run/roost "$tree"/usr/bin "$tree"/usr/share/doc/roost "$tree"/var/tmp
	install -d -m 711 "$tree/var/lib/roost"
	install -d -m 1777 "$tree/tmp" "$tree/var/tmp"
	for p in "$work"/static/*; do install -m 755 "$p" "$tree/usr/bin/"; done
	printf 'root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n' >"$tree/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$tree/etc/group"
	chmod 644 "$tree"/etc/passwd "$tree"/etc/group
	build/tools/sbom -notices "$tree/usr/share/doc/roost/third-party-licenses" "$work"/static/*
	install -m 644 LICENSE "$tree/usr/share/doc/roost/"
	sed "s|@VERSION@|$VERSION|g" scripts/package/image.json >"$work/image.json"
	build/tools/ociimage -arch "$arch" -tag "$tag" -epoch "$SOURCE_DATE_EPOCH" -config "$work/image.json" \
		"$tree" "$dist/roost-central-$tag-$arch.oci"
}

. scripts/flags.sh
mkdir -p "$work" "$dist"
if [ -z "${PACKAGE_BUILT:-}" ] && [ "$*" != image ]; then build_programs; fi
env -u GOARCH CGO_ENABLED=0 "$GO" build -o build/tools/sbom ./scripts/sbom
[ "$*" = image ] || fill_trees
for format in "$@"; do
	case $format in
	deb | rpm) make_packages "$format" ;;
	tar) make_tar ;;
	image) make_image ;;
	*) echo "package: no format is called $format" >&2 && exit 64 ;;
	esac
done
[ "$*" != image ] || exit 0
build/tools/sbom -version "$VERSION" -epoch "$SOURCE_DATE_EPOCH" "$work"/bin/roost* >"$dist/roost-$VERSION-$arch.cdx.json"
(cd "$dist" && sha256sum -- *.deb *.rpm *.tar.gz *.cdx.json 2>/dev/null >SHA256SUMS || true)
ls -l "$dist"
