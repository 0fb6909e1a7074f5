#!/bin/sh
# Rates and budgets of a pool, for an administrator with the capability accounts:
#
#	roost admin give ann accounts
#
# A rate is never changed: run the commands again with a later date to replace it.
set -eu

# A task pays for its greatest share of such a machine. A core for an hour is 0.02 units,
# and so are 4 GiB of memory; a GPU is as much as 16 cores. 10 units a month are free.
roost rate set --from 2026-01-01 --rule dominant --machine 64:256GiB:4 --core-hour 0.02 \
	--band free=0 --band production=1.5 --grant 10

# This group has paid for its own GPUs.
roost rate set --from 2026-01-01 --group physics --rule sum --core-hour 0.02 --gib-hour 0.002 --gpu-hour 0

# A project that warns when 80 % are spent, and a user whose jobs are refused.
roost budget set --project ocean --amount 5000 --first 2026-01 --last 2026-12
roost budget set --user guest --amount 50 --first 2026-01 --last 2026-12 --hard
