# Made of hello.slurm, which was written for Slurm, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Not carried over:
#   line 4: #SBATCH --mail-type=END,FAIL
#       Roost sends no mail. roost wait ID returns when a job has ended, with its exit status: roost wait ID;
#       echo done | mail you@example.org.
#   line 5: #SBATCH --mail-user=ann@example.org
#       Roost sends no mail. roost wait ID returns when a job has ended, with its exit status: roost wait ID;
#       echo done | mail you@example.org.
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

  script = <<-END
    #!/bin/bash
    # What follows up to the empty line was added for Roost.
    export SLURM_JOB_ID="$${ROOST_JOB_ID%%.*}"

    echo "hello from $(hostname), job $SLURM_JOB_ID"
  END
}
# slurm: 1 jobs, 2 carried, 2 lost, 1 differ
