#!/bin/sh
# What --immediate-submit of Snakemake calls with the name of a job, the ids that it depends on, and its script: prints the id of the new job.
name=$1 depend=
shift
while [ $# -gt 1 ]; do
	depend=$depend:$1
	shift
done
exec qsub -V -N "$name" ${depend:+-W depend=afterok$depend} "$1"
