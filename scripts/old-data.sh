#!/usr/bin/env bash
# old-data.sh has the programs of an older version (old-release.sh) write the data of a
# small pool: jobs of all kinds, settings of the cell, the history, the accounts, stored
# packages. It packs them into internal/e2e/testdata/releases/, with what the commands of
# that version say of them. TestOldData reads them with the programs of this tree. Run it
# once for each release, as root, with OLD=TAG, and commit the file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
[ "$(id -u)" = 0 ] || { echo "old-data: run it as root: its jobs are those of root" >&2; exit 77; }
programs=$(scripts/old-release.sh)
work=$(mktemp -d /var/tmp/roost-old-data-XXXXXX)
chmod 755 "$work"
export PATH="$programs:$PATH" ROOST_DIR="$work/pool" HOME="$work"
mkdir -p "$work/pool/etc" "$work/pool/expected"

cat >"$work/pool/etc/node.hcl" <<END
name = "release"
dir  = "$work/pool"
collector {}
negotiator {}
schedd {
  allow_root   = true
  keep_history = "100000h"
}
checkpoint_server {}
accountant {}
startd "n1" {
  allow_root = true
  cpus       = 8
  memory     = "4GiB"
  disk       = "4GiB"
}
END

master=
finish() {
	local status=$?
	trap - EXIT
	[ -z "$master" ] || kill -KILL "$master" 2>/dev/null || true
	# starters and tasks outlive a master that was killed
	for pid in $({ grep -alz "^ROOST_OLD_DATA=$work$" /proc/[0-9]*/environ; grep -alF "$work/" /proc/[0-9]*/cmdline; } 2>/dev/null | cut -d/ -f3); do
		[ "$pid" = $$ ] || [ "$pid" = "$BASHPID" ] || kill -KILL "$pid" 2>/dev/null || true
	done
	[ $status = 0 ] || tail -n 20 "$work"/master.log "$work"/pool/log/*.log >&2
	rm -rf "$work"
	exit $status
}
trap finish EXIT

# until_says TEXT COMMAND... waits until the output of a command has a text.
until_says() {
	local text=$1
	shift
	for _ in $(seq 300); do
		! "$@" 2>&1 | grep -qE -- "$text" || return 0
		sleep 0.1
	done
	echo "old-data: after 30 seconds \"$*\" does not say \"$text\":" >&2
	"$@" >&2 || true
	return 1
}

cd "$work"
env ROOST_OLD_DATA="$work" setsid roost master --config "$work/pool/etc/node.hcl" >"$work/master.log" 2>&1 </dev/null &
master=$!
until_says 'n1' roost nodes

# Settings of the cell.
roost group set sci --cores 4 --surplus on
roost group set sci.chem --fraction 0.5
roost quota set --group sci.chem --band production --cpus 2 --memory 1GiB
roost quota set each --tasks 1000
roost limit set matlab 2
roost queue set fast --band batch --max-walltime 1h
roost cell set half_life 12h
roost admin give ann@release quotas drains --force
roost shares set root --factor 10 --force
mkdir package && echo one >package/name && roost package push package app@1 && roost package label app@live app@1

# Jobs of all kinds. Task N of an array exits with N modulo 2.
cat >ended.hcl <<END
job "ended" {
  directory = "/"
  command   = ["/bin/sh", "-c", "echo written by task \$ROOST_TASK_INDEX; exit \$((ROOST_TASK_INDEX % 2))"]
  count     = 4
  cpus      = 1
  memory    = "16MiB"
  walltime  = "10m"
}
END
cat >jobs.hcl <<END
job "held" {
  directory = "/"
  command   = ["/bin/echo", "was held"]
  cpus      = 0.5
  memory    = "16MiB"
  walltime  = "10m"
}
job "after" {
  directory  = "/"
  command    = ["/bin/echo", "comes after"]
  depends_on = [job.held]
  memory     = "16MiB"
  walltime   = "10m"
}
job "array" {
  directory   = "/"
  command     = ["/bin/sh", "-c", "echo element \$ROOST_TASK_INDEX"]
  count       = 20
  max_running = 3
  depends_on  = [job.held]
  cpus        = 0.5
  memory      = "16MiB"
  walltime    = "10m"
}
END
cat >waits.hcl <<END
job "waits" {
  directory = "/"
  command   = ["/bin/true"]
  cpus      = 64
  priority  = 7
  memory    = "16MiB"
  walltime  = "10m"
  limits    = ["matlab"]
}
job "nightly" {
  directory = "/"
  command   = ["/bin/true"]
  memory    = "16MiB"
  walltime  = "10m"
  schedule {
    cron   = "30 2 1 1 *"
    zone   = "UTC"
    missed = "none"
  }
}
END
cat >runs.hcl <<END
job "runs" {
  directory = "/"
  command   = ["/bin/sh", "-c", "test \$ROOST_ATTEMPT -gt 1 || exec sleep 1000; echo again"]
  memory    = "16MiB"
  walltime  = "10m"
  cpus      = 0.5
  lease     = "10s"
  environment = { ROOST_OLD_DATA = "$work" }
}
job "service" {
  directory = "/"
  command   = ["/bin/sleep", "1000"]
  memory    = "16MiB"
  cpus      = 0.5
  environment = { ROOST_OLD_DATA = "$work" }
  service {
    drain = "0s"
  }
}
END
roost submit ended.hcl
timeout 30 roost wait 1 || [ $? = 1 ] || { roost show --events 12 1; roost show --events 8 "1[0]"; exit 1; }
roost submit --hold jobs.hcl
roost submit waits.hcl
roost submit runs.hcl
roost run --detach --name removed --cpus 64 -- true
roost rm --yes @removed
until_says 'running' roost jobs @runs
until_says 'running' roost jobs @service
until_says '"ended":[1-9]' roost usage --json

# What this version says of all that.
expect() { roost "${@:2}" --json >"$work/pool/expected/$1.json"; }
expect jobs jobs --all --history
expect history history
for name in group quota limit queue admin; do expect $name $name; done
expect settings cell settings
expect package package list
expect cron cron
expect usage usage

kill -KILL "$master"
wait "$master" 2>/dev/null || true
master=
rm -rf pool/run pool/log pool/schedd/reserve # room for a full disk, which is made anew
version=$("$programs/roost" version | awk '{ print $2; exit }')
commit=$(basename "$programs")
to=$root/internal/e2e/testdata/releases/$version-$commit.tar.gz
mkdir -p "$(dirname "$to")"
sed -i "s|$work|/old-data|g" pool/etc/node.hcl
tar -C pool --sort=name --owner=0 --group=0 --numeric-owner -cf - . | gzip -9n >"$to"
ls -l "$to"
