#!/bin/sh
# Prints what Snakemake has to know of a job: running, success or failed.
found=$(roost jobs --history --json -- "$1") || exit 1
case $(printf '%s\n' "$found" | sed -n 's/^ *"state": "\([a-z]*\)",*$/\1/p' | head -n 1) in
completed) echo success ;;
failed | removed) echo failed ;;
held) # by Roost it stays held until somebody mends the cause, which the reason names
	echo running ;;
'') echo failed ;; # there is no such job
*) echo running ;;
esac
