# Made of hello.slurm, which was written for Slurm, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Different here:
#   no --output
#       Slurm then writes slurm-ID.out; here the output is kept, and roost logs shows it.
#
# Variables of Slurm that it reads, and what they are here:
#   SLURM_JOB_ID  $ROOST_JOB_ID, set at the top of the script

job "hello" {
  getenv = true

  join_output = true

  walltime = "5m"

  mail_on = ["abort", "end"]
  mail_to = ["ann@example.org"]

  script = <<-END
    #!/bin/bash
    # What follows up to the empty line was added for Roost.
    export SLURM_JOB_ID="$${ROOST_JOB_ID%%.*}"

    echo "hello from $(hostname), job $SLURM_JOB_ID"
  END
}
# slurm: 1 jobs, 4 carried, 0 lost, 1 differ
