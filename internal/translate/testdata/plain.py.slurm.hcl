# Made of plain.py.slurm, which was written for Slurm, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Different here:
#   $SLURM_JOB_ID
#       The script, which no Bourne shell runs, reads a variable that Roost calls ROOST_JOB_ID.
#
# Variables of Slurm that it reads, and what they are here:
#   SLURM_ARRAY_TASK_ID  set by environment, below; $ROOST_TASK_INDEX counts from 0
#   SLURM_JOB_ID         $ROOST_JOB_ID: not set under the old name, as only a shell's script could; read it under the new one

job "plain.py" {
  indexes = "0,3,5-12"

  getenv = true
  environment = {
    SLURM_ARRAY_TASK_ID = each.value
  }

  stdout      = "/dev/null"
  join_output = true

  script = <<-END
    #!/usr/bin/env python3
    import os
    print(os.environ["SLURM_ARRAY_TASK_ID"], os.environ["SLURM_JOB_ID"], f"{os.getpid()}")
  END
}
# slurm: 1 jobs, 2 carried, 0 lost, 1 differ
