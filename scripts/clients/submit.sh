#!/bin/sh
# Snakemake's --immediate-submit calls this with a job's name, the ids of its
# dependencies, and its script. It prints the id of the new job. If a job ends while
# Snakemake still submits others, Snakemake counts it twice and fails with a KeyError: so
# jobs without dependencies start a little later.
name=$1 depend= later=
shift
while [ $# -gt 1 ]; do
	depend=$depend:$1
	shift
done
[ -n "$depend" ] || later="-a $(date -d '15 seconds' +%Y%m%d%H%M.%S)"
# shellcheck disable=SC2086 # two words
exec qsub -V -N "$name" $later ${depend:+-W depend=afterok$depend} "$1"
