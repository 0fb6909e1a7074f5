#!/usr/bin/env bash
# debs.sh DIR SUITE PACKAGE... unpacks packages of a Debian suite with all their
# dependencies below DIR, and installs nothing on this machine. It runs apt with its own
# configuration, state and (empty) list of installed packages, so that apt verifies the
# archive's signature and its files' hashes as usual. With ALONE=1 it omits the
# dependencies. The mirror is that of the local apt, or $DEBIAN_MIRROR. DIR is created
# once: a later call with the same packages returns at once.
set -euo pipefail
dir=$1 suite=$2
shift 2
done=$dir/.debs
want="$suite ${ALONE:-} $*"
[ "$(cat "$done" 2>/dev/null)" != "$want" ] || exit 0

fail() {
	printf 'debs: %s\n' "$@" >&2
	exit 1
}

for program in apt-get dpkg-deb tar; do
	command -v $program >/dev/null || fail "$program is needed, and is not here: this works on Debian and what descends from it."
done
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)}
[ -n "$mirror" ] || fail "apt knows no mirror of Debian." "Name one: DEBIAN_MIRROR=http://…/debian/"
keyring=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
[ -r "$keyring" ] || fail "the keys of Debian's archive are not in $keyring." "Install debian-archive-keyring, or name a file: DEBIAN_KEYRING=…"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work"/{parts,state/lists/partial,cache/archives/partial,log}
: >"$work/status"
cat >"$work/apt.conf" <<END
Dir::State "$work/state"; Dir::State::status "$work/status"; Dir::Cache "$work/cache"; Dir::Log "$work/log";
Dir::Etc::sourcelist "$work/sources.list"; Dir::Etc::sourceparts "/dev/null"; Dir::Etc::parts "$work/parts";
Dir::Etc::preferences "/dev/null"; Dir::Etc::preferencesparts "/dev/null"; Dir::Etc::trusted "/dev/null"; Dir::Etc::trustedparts "/dev/null";
APT::Install-Recommends "false"; APT::Install-Suggests "false"; APT::Sandbox::User "root"; Debug::NoLocking "true";
Acquire::Languages "none"; Acquire::AllowInsecureRepositories "false"; Acquire::Retries "3";
END
echo "deb [signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
export APT_CONFIG="$work/apt.conf"
apt-get -qq update || fail "the packages of $suite could not be listed."

# The name of a kernel package changes with each version: it is the dependency of the
# package without a version.
packages=()
for p in "$@"; do
	case $p in
	linux-image-*) p=$(apt-cache depends "$p" | awk '$1 == "Depends:" { print $2; exit }') ;;
	esac
	packages+=("$p")
done
cd "$work/cache/archives"
if [ -n "${ALONE:-}" ]; then
	apt-get -qq download "${packages[@]}" || fail "${packages[*]} could not be fetched from $suite."
else
	apt-get -qq -y --download-only install "${packages[@]}" >/dev/null || fail "${packages[*]} could not be fetched from $suite."
fi
cd "$OLDPWD"

rm -rf "$dir.new" && mkdir -p "$dir.new"/usr/{bin,sbin,lib,lib64}
for d in bin sbin lib lib64; do ln -s usr/$d "$dir.new/$d"; done # as in Debian: old packages contain /bin and /lib
for deb in "$work"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir.new" --no-same-owner --keep-directory-symlink \
		--exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*'
done
echo "$want" >"$dir.new/.debs"
rm -rf "$dir" && mv "$dir.new" "$dir"
