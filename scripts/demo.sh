#!/usr/bin/env bash
# Runs a pool of two nodes on this machine and a sweep of 32 tasks in it, and shows the
# combined result. It removes everything afterwards.
set -uo pipefail
cd "$(dirname "$0")/.."
tasks=32
export PATH="$PWD/bin:$PATH"
work=$(mktemp -d)
export ROOST_DIR="$work/pool"
pool=

finish() {
	local status=$?
	trap - EXIT INT TERM
	if [ -n "$pool" ] && kill -0 "$pool" 2>/dev/null; then
		kill -TERM "$pool"
		wait "$pool" && echo && echo "The pool is stopped." || echo "demo: the pool did not stop cleanly (status $?)" >&2
	fi
	if [ $status != 0 ] && [ -d "$ROOST_DIR/log" ]; then
		echo "demo: the logs of the pool are in $ROOST_DIR/log" >&2
	else
		rm -rf "$work"
	fi
	exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
	printf 'demo: %s\n' "$@" >&2
	exit 1
}

for program in roost roost-accountant roost-daemon roost-negotiator roost-node roost-q roost-ranks roost-starter roost-web; do
	[ -x "bin/$program" ] || fail "bin/$program is not built: run \"make build\""
done
command -v awk >/dev/null || fail "awk is needed by the tasks of the demo"

echo "\$ roost up --nodes 2 --cpus 8"
roost up --nodes 2 --cpus 8 >"$work/up.log" 2>&1 &
pool=$!
for _ in $(seq 200); do
	grep -q '^A pool is up' "$work/up.log" && break
	kill -0 "$pool" 2>/dev/null || { status=0; wait "$pool" || status=$?; pool=; fail "the pool did not start (status $status):" "$(cat "$work/up.log")"; }
	sleep 0.05
done
grep '^A pool is up' "$work/up.log" || fail "the pool is not ready after 10 seconds:" "$(cat "$work/up.log")"

cp etc/demo/* "$work/" && mkdir "$work/results" && cd "$work" || fail "cannot write below $work"
echo
echo "\$ roost submit sweep.hcl"
roost submit sweep.hcl || fail "the job was not accepted (status $?)"
echo
echo "\$ roost wait last"
roost wait last || { status=$?; roost why last >&2; fail "the sweep did not succeed (status $status)"; }

got=$(cat results/*.txt 2>/dev/null | wc -l)
[ "$got" -eq $tasks ] || fail "$tasks results were expected, and there are $got below $work/results"

echo
echo "The sweep's result: where the logistic map x -> r x (1 - x) is chaotic"
echo
sort -n results/*.txt | awk '
	{ chaotic += $2 > 0; if ($2 > top) { top = $2; at = $1 }; nodes[$3]++
	  bar = ""; for (i = 0; i < ($2 < 0 ? -$2 : $2) * 30 && i < 30; i++) bar = bar ($2 > 0 ? "#" : "-")
	  printf "  r = %s  exponent %9.5f  %s\n", $1, $2, bar }
	END {
		printf "\n  %d of %d values of r are chaotic; the largest exponent is %.5f, at r = %s (ln 2 = 0.69315 is the limit at r = 4)\n", chaotic, NR, top, at
		for (n in nodes) if (n != "-") printf "  %s ran %d tasks\n", n, nodes[n]
	}'
