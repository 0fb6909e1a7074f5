#!/bin/sh
# Snakemake's --cluster-status calls this with a job's id. It prints running, success or
# failed.
qstat -x -f "$1" | awk -F ' = ' '
	$1 ~ /job_state$/ { state = $2 }
	$1 ~ /Exit_status$/ { code = $2 }
	END { print state != "F" ? "running" : code == "0" ? "success" : "failed" }'
