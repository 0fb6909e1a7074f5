#!/usr/bin/env bash
# Copies the built files below $DESTDIR$PREFIX. Called by make install, which sets
# DESTDIR, PREFIX, PBS, PBS_LOCAL, SLURM and SLURM_LOCAL. The commands of Slurm are left
# out where Slurm's own are on PATH, unless WITH_SLURM is set.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$DESTDIR$PREFIX

install -d "$to/bin"
install -m 755 bin/roost bin/roost-accountant bin/roost-daemon bin/roost-negotiator bin/roost-node bin/roost-q bin/roost-ranks bin/roost-sim bin/roost-starter bin/roost-web "$to/bin/"
[ ! -e bin/roost-pam ] || install -m 755 bin/roost-pam "$to/bin/"
for q in $PBS; do ln -sf roost "$to/bin/$q"; done
for q in $PBS_LOCAL; do ln -sf roost-q "$to/bin/$q"; done

# others reports whether a command on PATH is none of Roost.
others() {
	local found
	found=$(command -v "$1") || return 1
	case $(basename "$(readlink -f "$found")") in roost*) return 1 ;; esac
	[ -z "${WITH_SLURM:-}" ]
}
for q in $SLURM; do others "$q" || ln -sf roost "$to/bin/$q"; done
for q in $SLURM_LOCAL; do others "$q" || ln -sf roost-q "$to/bin/$q"; done

for wheel in bin/roost-*.whl; do
	[ ! -e "$wheel" ] || install -D -m 644 "$wheel" "$to/share/roost/$(basename "$wheel")"
done

if [ -e bin/libdrmaa.so.1 ]; then
	install -D -m 755 bin/libdrmaa.so.1 "$to/lib/libdrmaa.so.1"
	ln -sf libdrmaa.so.1 "$to/lib/libdrmaa.so"
	install -D -m 644 internal/drmaa/drmaa.h "$to/include/drmaa.h"
fi

for page in man/*.[1-8]; do
	install -D -m 644 "$page" "$to/share/man/man${page##*.}/$(basename "$page")"
done

completion() { [ ! -e "$1" ] || install -D -m 644 "$1" "$to/share/$2"; }
completion etc/completion/roost.bash bash-completion/completions/roost
completion etc/completion/roost.zsh zsh/site-functions/_roost
completion etc/completion/roost.fish fish/vendor_completions.d/roost.fish

install -d "$to/lib/systemd/system"
for unit in etc/systemd/*.service; do
	sed "s|/usr/local|$PREFIX|g" "$unit" >"$to/lib/systemd/system/$(basename "$unit")"
	chmod 644 "$to/lib/systemd/system/$(basename "$unit")"
done

install -D -m 644 etc/systemd/roost.sysusers "$to/lib/sysusers.d/roost.conf"
install -D -m 644 etc/systemd/roost.tmpfiles "$to/lib/tmpfiles.d/roost.conf"
install -D -m 644 etc/systemd/central.conf "$to/share/doc/roost/systemd/central.conf"

for sample in $(git ls-files -co --exclude-standard etc/apparmor etc/hooks etc/nodes etc/accounts etc/owner.hcl etc/autostart etc/jobs etc/flows etc/demo etc/nextflow etc/prometheus etc/python etc/sim etc/snakemake etc/web 2>/dev/null || find etc/apparmor etc/hooks etc/nodes etc/accounts etc/owner.hcl etc/autostart etc/jobs etc/flows etc/demo etc/nextflow etc/prometheus etc/python etc/sim etc/snakemake etc/web -type f); do
	mode=644
	[ ! -x "$sample" ] || mode=755
	install -D -m $mode "$sample" "$to/share/doc/roost/${sample#etc/}"
done
install -m 644 README.md LICENSE "$to/share/doc/roost/"
echo "installed below $to; samples are in $to/share/doc/roost"
