# Made of mpi.slurm, which was written for Slurm, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Not carried over:
#   line 8: #SBATCH --switches=1
#       Roost places and binds tasks by itself: each gets cores, memory and GPUs of its own, near each other.
#
# Different here:
#   line 2: #SBATCH --nodes=4
#       It becomes 4 tasks that start together, one for each machine. Each of them runs the whole script; in
#       Slurm only the first machine does, and srun reaches the others. $ROOST_GANG_RANK, $ROOST_GANG_SIZE and
#       $ROOST_GANG_NODES tell the tasks apart.
#   line 6: #SBATCH --constraint="skylake&ib"
#       A feature is an attribute of the machines here, which their administrator adds in the node file:
#       attributes = { skylake = true }; see roost-node(5).
#   line 11: srun --mpi=pmix ./solver input.nml
#       There is no srun in Roost. A task is one process tree on one machine: call the program itself, or
#       several of them with & and wait; for several tasks make count larger.
#   line 12: mpirun -np $SLURM_NTASKS ./post
#       Here every one of the 4 tasks runs the whole script, and each would start this. Let only the first do
#       it, [ "$ROOST_GANG_RANK" = 0 ] && …, with the machines of $ROOST_GANG_NODES; or, on one large machine,
#       remove gang and count and ask for all the cores at once.
#   no --output
#       Slurm then writes slurm-ID.out; here the output is kept, and roost logs shows it.
#
# Variables of Slurm that it reads, and what they are here:
#   SLURM_JOB_NODELIST  $ROOST_GANG_NODES, set at the top of the script
#   SLURM_NTASKS        set by environment, below

job "mpi" {
  count     = 4
  gang      = true
  exclusive = true

  getenv = true
  environment = {
    SLURM_NTASKS = 64
  }

  join_output = true

  cpus     = 16
  walltime = "2h"

  requirements = machine.skylake && machine.ib && machine.name != "n01" && machine.name != "n02" && machine.name != "n03"
  spread       = "Machine"

  script = <<-END
    #!/bin/bash
    # What follows up to the empty line was added for Roost.
    export SLURM_JOB_NODELIST="$${ROOST_GANG_NODES:-$ROOST_NODE}"

    module load openmpi
    srun --mpi=pmix ./solver input.nml
    mpirun -np $SLURM_NTASKS ./post
    echo "$SLURM_JOB_NODELIST"
  END
}
# slurm: 1 jobs, 6 carried, 1 lost, 5 differ
