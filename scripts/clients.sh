#!/usr/bin/env bash
# Runs Debian's Snakemake on a pool of two nodes. It runs a small workflow in each of the
# four ways in which Snakemake uses a cluster and by Roost's own profile, with failing
# rules, and one that is interrupted. An Open MPI program runs on both nodes as well. All run at the same time.
# It prints the results; the status is 0 if all passed.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/bin:$PATH"
parts=$PWD/scripts/clients
package=$PWD/python
work=$(mktemp -d /var/tmp/roost-clients.XXXXXX) # not below /tmp, which is private to each job
export ROOST_DIR="$work/pool" HOME="$work/home" XDG_CACHE_HOME="$work/home/.cache"
mkdir "$HOME"
limit=300 # seconds for each run; one takes about 40, as Snakemake polls every 10
pool=
pids=

finish() {
	local status=$?
	trap - EXIT INT TERM
	for pid in $pids; do kill -KILL -- "-$pid" 2>/dev/null; done # on SIGTERM Snakemake would wait for its jobs
	[ -z "$pids" ] || wait $pids 2>/dev/null
	if [ -n "$pool" ]; then
		kill -INT "$pool"
		wait "$pool" || { echo "clients: the pool did not stop cleanly (status $?)" >&2; status=1; }
	fi
	if [ $status = 0 ]; then rm -rf "$work"; else echo "clients: what the runs and the pool have said is in $work" >&2; fi
	exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
	printf 'clients: %s\n' "$@" >&2
	exit 1
}

# texts writes the input of the workflow. The jobs of a run start in HOME, and each one's
# script changes to the right directory itself.
texts() {
	cp "$parts/Snakefile" .
	echo "a rose is a rose is a rose" >one.txt
	echo "all the world is a stage" >two.txt
	echo "once more unto the breach" >three.txt
}
snakemake=(timeout --foreground $limit /usr/bin/snakemake --latency-wait 30 -j 8)

# submits OPTION… prints the command that submits a job of this run. The first word of its
# jobs' names identifies the run.
submits() { echo "qsub $* -V -N $run.{rule} -l select=1:ncpus={threads}:mem={resources.mem_mb}mb -l walltime=0:10:0"; }

plain() { "${snakemake[@]}" --cluster "$(submits)" && whole 5; }
waiting() { "${snakemake[@]}" --cluster-sync "$(submits -W block=true)" && whole 5; }
asking() { "${snakemake[@]}" --cluster "$(submits)" --cluster-status "$parts/status.sh" --cluster-cancel qdel && whole 5; }

# All jobs are submitted at once, including the rule that only names the result.
chained() { "${snakemake[@]}" --immediate-submit --notemp --cluster "$parts/submit.sh $run.{rule} {dependencies}" && ended && whole 6; }

# The profile that comes with Roost, which submits by the Python package.
profile() {
	local run=snakemake
	sed -i 's/\$PBS_JOBID/$ROOST_JOB_ID/' Snakefile
	PYTHONPATH="$package" "${snakemake[@]}" --profile "$package/../etc/snakemake/roost" && whole 5
}

# The same with a rule that fails: its job is named, and the third wave does not start.
profile_failing() {
	cp -r "$package/../etc/snakemake/roost" profile
	sed -i 's/"snakemake\./"profile_failing./' profile/submit.py
	PYTHONPATH="$package" "${snakemake[@]}" --profile profile --config fail=1 2>&1 | tee said
	[ "${PIPESTATUS[0]}" = 1 ] && grep 'external: [0-9]*\.' said && count 3 0 && count 1 7
}

# The second wave fails: Snakemake must name the failed job, and must not start the third.
failing() {
	"${snakemake[@]}" --cluster "$(submits)" --config fail=1 2>&1 | tee said
	[ "${PIPESTATUS[0]}" = 1 ] && grep 'cluster_jobid: [0-9]*\.' said && count 3 0 && count 1 1
}

# Snakemake is interrupted while the second wave runs, and must delete its job.
interrupted() {
	env --default-signal=INT "${snakemake[@]}" --cluster "$(submits)" --cluster-cancel qdel --config wait=1 &
	until [ -n "$(qselect -N "$run.add" -s R)" ]; do
		kill -0 $! || { echo "it ended before it was interrupted"; return 1; }
		sleep 0.2
	done
	kill -INT "$(pgrep -P $!)" # timeout would send it twice
	wait $! && { echo "it says that all is well"; return 1; }
	ended && count 3 0 && count 1 271
}

# A program with several processes on both nodes. Open MPI starts the processes from the
# job's allocation, and again from the node file.
mpi() {
	cat >mpi.sh <<-'END'
		#!/bin/sh
		cd "$PBS_O_WORKDIR"
		mpirun.openmpi /usr/bin/python3 sum.py && mpirun.openmpi -machinefile "$PBS_NODEFILE" hostname
	END
	cp "$parts/sum.py" .
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	timeout --foreground $limit qsub -V -N "$run.job" -l select=2:ncpus=1:mpiprocs=2:mem=512mb -l place=scatter -l walltime=0:05:00 -j oe -o out -W block=true mpi.sh || { cat out; return 1; }
	cat out
	grep '^sum 6 of 4 on 2$' out && [ "$(grep -cx "$(hostname)" out)" = 4 ]
}

# whole JOBS checks for the result, and that so many jobs ended successfully.
whole() { grep '^19 words, told by [0-9]*\.' report.txt && count "$1" 0; }

# count JOBS STATUS checks that so many jobs of this run ended with this status.
count() {
	local n
	n=$(qstat -x -f | awk -F ' = ' -v "run=$run." -v "status=$2" '
		$1 ~ /^ *Job_Name$/ { mine = index($2, run) == 1 }
		$1 ~ /^ *Exit_status$/ && mine && $2 == status { n++ }
		END { print n + 0 }')
	[ "$n" = "$1" ] || { echo "$n jobs have ended with status $2, and not $1"; return 1; }
}

# ended waits until no job of this run is in the queue.
ended() {
	local end=$((SECONDS + limit))
	while qstat -f | grep "^    Job_Name = $run\."; do
		[ $SECONDS -lt $end ] || { echo "its jobs do not end"; return 1; }
		sleep 0.5
	done
}

# one RUN runs RUN in a directory of its own, and records its output, whether it passed,
# and its duration.
one() {
	local run=$1 began=$SECONDS verdict=failed
	mkdir "$work/$run" && cd "$work/$run" && texts && "$run" >log 2>&1 </dev/null && verdict=passed
	echo "$verdict $((SECONDS - began))" >verdict
}

[ -x bin/qsub ] || fail "bin/qsub is not built: run \"make build\""
scripts/setup.sh clients
[ -x /usr/bin/snakemake ] || fail "Snakemake is not there"

roost up --nodes 2 --cpus 8 >"$work/up.log" 2>&1 &
pool=$!
for _ in $(seq 200); do
	grep -q '^A pool is up' "$work/up.log" && break
	kill -0 "$pool" 2>/dev/null || { pool=; fail "the pool did not start:" "$(cat "$work/up.log")"; }
	sleep 0.05
done
grep '^A pool is up' "$work/up.log" || fail "the pool is not ready after 10 seconds:" "$(cat "$work/up.log")"
echo "Snakemake $(/usr/bin/snakemake --version) runs eight times; this takes about a minute."

runs="plain waiting asking chained failing interrupted profile profile_failing"
if command -v mpirun.openmpi >/dev/null && /usr/bin/python3 -c 'import mpi4py' 2>/dev/null; then
	runs="$runs mpi"
else
	echo "skipped         Open MPI on two nodes: openmpi-bin and python3-mpi4py are not there"
fi
set -m # each in a process group of its own
for run in $runs; do
	one $run &
	pids="$pids $!"
done
set +m
wait $pids
pids=

declare -A what=(
	[plain]="--cluster"
	[waiting]="--cluster-sync, with qsub -W block=true"
	[asking]="--cluster with --cluster-status and --cluster-cancel"
	[chained]="--immediate-submit, with afterok of {dependencies}"
	[failing]="a rule that fails"
	[interrupted]="an interrupt, and --cluster-cancel qdel"
	[profile]="--profile, with etc/snakemake/roost"
	[profile_failing]="that profile, and a rule that fails"
	[mpi]="Open MPI on two nodes"
)
bad=0
for run in $runs; do
	read -r verdict seconds <"$work/$run/verdict"
	printf '%s  %3d s  %s\n' "$verdict" "$seconds" "${what[$run]}"
	[ "$verdict" = passed ] || { bad=1; tail -n 15 "$work/$run/log" | sed 's/^/    /'; }
done
exit $bad
