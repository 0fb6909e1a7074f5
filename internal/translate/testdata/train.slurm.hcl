# Made of train.slurm, which was written for Slurm, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Not carried over:
#   line 10: #SBATCH --open-mode=append
#       Output is written anew by each attempt; one that goes on from a checkpoint continues it.
#   line 13: #SBATCH --qos=high
#       Roost has no QOS. A queue gives its jobs a band, a priority and bounds (roost queue), and quotas limit
#       who may have how much (roost quota).
#   line 14: #SBATCH --dependency=afterok:123:124,singleton
#       The ids are those of the other system. With the id of the job here write depends_on = ["ID"]; a job of
#       the same file is job.NAME, or { id = job.NAME, when = "afterany" }. singleton: let each depend on the
#       one before, or take a limit of one for all of them: limits = ["NAME"].
#   line 15: #SBATCH --tiem=3
#       --tiem is not known. Did you mean --time?
#
# Different here:
#   line 2: #SBATCH --job-name="ResNet 50"
#       A name is made of letters, digits and _ . + -.
#   line 3: #SBATCH --gres=gpu:a100:2
#       The kind of the GPU is looked for in the names of the machines' cards, as roost nodes --gpus shows
#       them.
#   line 7: #SBATCH --signal=B:USR1@120
#       A task gets SIGTERM, not SIGUSR1, when its walltime is over or it has to leave its machine, and
#       SIGKILL when the notice is over: trap TERM. A program that saves its own state needs a checkpoint
#       block with method = "self" and signal.
#   line 25: sbatch next.sh
#       Jobs are submitted with roost submit FILE, or qsub; what is to follow this one can be in the same job
#       file, with depends_on = [job.NAME].
#
# Variables of Slurm that it reads, and what they are here:
#   SLURM_JOB_NAME       set by environment, below
#   SLURM_RESTART_COUNT  $ROOST_ATTEMPT, set at the top of the script

job "ResNet_50" {
  getenv = true
  environment = {
    SLURM_JOB_NAME = "ResNet 50"
  }

  stdout      = "ResNet 50-${task.job}.out"
  join_output = true

  cpus     = 16
  memory   = "64GiB"
  gpus     = 2
  walltime = "1d"

  requirements = "regexp(\"a100\", join(\",\", TARGET.GpuModels), \"i\")"
  limits       = ["matlab:2", "ansys"]

  start_after = "2h"
  rerunnable  = true
  notice      = "2m"
  labels = {
    comment = "the big one"
  }

  script = <<-END_
    #!/bin/bash -l
    # What follows up to the empty line was added for Roost.
    export SLURM_RESTART_COUNT="$((ROOST_ATTEMPT - 1))"

    trap 'touch requeue' USR1
    if [ "$${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then resume="--resume ${"$"}$${dir}/last.pt"; fi
    cat <<END
    $${SLURM_JOB_NAME} %%{not a directive}
    END
    python train.py $resume &
    wait
    sbatch next.sh
  END_
}
# slurm: 1 jobs, 11 carried, 4 lost, 4 differ
