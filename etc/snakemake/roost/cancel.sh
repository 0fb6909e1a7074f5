#!/bin/sh
# Removes jobs of Snakemake.
exec roost rm --yes --json -- "$@" >/dev/null
