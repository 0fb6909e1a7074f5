# Made of array.pbs, which was written for PBS, by roost translate; see roost-job(5) and roost-coming-from(7).
#
# Not carried over:
#   line 4: #PBS -l software=matlab
#       It bounds nothing by itself. Where licences are counted, write limits = ["matlab"]; roost limit lists
#       them.
#
# Different here:
#   localhost:/scratch/err/^array_index^.err
#       Output goes to the machine where the job is submitted.
#
# Variables of PBS that it reads, and what they are here:
#   PBS_ARRAY_INDEX  set by environment, below; $ROOST_TASK_INDEX counts from 0
#   PBS_O_WORKDIR    $PWD, set at the top of the script

job "array" {
  count = 200

  environment = {
    PBS_ARRAY_INDEX = task.index
  }

  stdout       = "out.${task.index}"
  stderr       = "/scratch/err/${task.index}.err"
  empty_output = true

  cpus     = 1
  memory   = "500MiB"
  walltime = "30m"

  start_after = "2026-12-24 18:00"

  checkpoint {
    every = "30m"
  }

  script = <<-END
    #!/bin/sh
    # What follows up to the empty line was added for Roost.
    export PBS_O_WORKDIR="$PWD"

    cd "$PBS_O_WORKDIR" || exit 1
    exec ./work "data/$PBS_ARRAY_INDEX.csv"
  END
}
# pbs: 1 jobs, 6 carried, 1 lost, 1 differ
