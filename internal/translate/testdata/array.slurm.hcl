# Made of array.slurm, which was written for Slurm, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Different here:
#   line 3: #SBATCH -p short,long
#       A job goes to one queue; the first of these is taken. Without a queue it may run anywhere.
#       A partition is a queue here. The administrator makes one with roost queue set; roost queue lists them.
#   line 18: #SBATCH --mem=1G
#       It comes after the first command, where Slurm ignores it; so it was ignored here, too.
#
# Variables of Slurm that it reads, and what they are here:
#   SLURM_ARRAY_TASK_COUNT  set by environment, below
#   SLURM_ARRAY_TASK_ID     set by environment, below; $ROOST_TASK_INDEX counts from 0
#   SLURM_CPUS_PER_TASK     set by environment, below
#   SLURM_SUBMIT_DIR        $PWD, set at the top of the script

job "sweep" {
  indexes     = "1-99:2"
  max_running = 10

  environment = {
    SLURM_ARRAY_TASK_COUNT = 50
    SLURM_ARRAY_TASK_ID    = each.value
    SLURM_CPUS_PER_TASK    = 4
  }

  stdout = "logs/sweep-${task.job}_${format("%03d", each.value)}.out"
  stderr = "logs/sweep_${each.value}.err"

  cpus     = 4
  memory   = "8GiB"
  walltime = "1d12h30m"

  queue      = "short"
  group      = "physics"
  rerunnable = false

  script = <<-END
    #!/bin/bash
    # What follows up to the empty line was added for Roost.
    export SLURM_SUBMIT_DIR="$PWD"
    srun() { "$@"; }

    ##SBATCH --qos=debug

    module load python/3.11
    export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
    srun python sweep.py --seed "$SLURM_ARRAY_TASK_ID" --of $${SLURM_ARRAY_TASK_COUNT} --out "$SLURM_SUBMIT_DIR/out"
  END
}
# slurm: 1 jobs, 11 carried, 0 lost, 3 differ
