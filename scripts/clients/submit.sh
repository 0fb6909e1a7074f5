#!/bin/sh
# What --immediate-submit of Snakemake calls with the name of a job, the ids that it depends on, and its script: prints the id of the new job.
# A job that ends while Snakemake still submits others it counts twice, and fails with a KeyError: those that wait for no other begin a while later.
name=$1 depend= later=
shift
while [ $# -gt 1 ]; do
	depend=$depend:$1
	shift
done
[ -n "$depend" ] || later="-a $(date -d '15 seconds' +%Y%m%d%H%M.%S)"
# shellcheck disable=SC2086 # two words
exec qsub -V -N "$name" $later ${depend:+-W depend=afterok$depend} "$1"
