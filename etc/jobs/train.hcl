# A training on a part of a GPU, which other tasks may share. The state of a GPU cannot be
# saved from outside, so the program saves its own state on request, exits with 85, and is
# started again where resources are free. It finds its state in the directory of the job.
job "train" {
  script = <<-END
    step=$(cat state 2>/dev/null || echo 0)
    trap 'echo $step > state; exit 85' USR2
    while [ $step -lt 1000 ]; do
      step=$((step + 1))
      sleep 1 &
      wait # unlike a command, it ends when a signal arrives
    done
    rm -f state
    echo "trained $step steps on GPU $CUDA_VISIBLE_DEVICES, with $ROOST_GPU_MEMORY MiB of it"
  END

  gpu_memory = "8GiB"
  cpus       = 2
  memory     = "4GiB"
  walltime   = "24h"

  checkpoint {
    method    = "self"
    signal    = "USR2"
    exit_code = 85
    every     = "1h"
  }
}
