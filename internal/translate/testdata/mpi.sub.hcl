# Made of mpi.sub, which was written for HTCondor, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Not carried over:
#   line 8: require_gpus = Capability >= 8.0
#       gpu_memory asks for memory of the card; write other properties of the card as requirements.
#
# Different here:
#   line 1: universe = parallel
#       $ROOST_GANG_RANK, $ROOST_GANG_SIZE and $ROOST_GANG_NODES tell the tasks apart.

job "mpi" {
  count = 4
  gang  = true

  image = "docker://debian"

  executable = "mpi.sh"

  environment = {
    A = "1"
    B = "2"
  }

  stdin = "/dev/null"

  gpus     = 1
  walltime = "1h30m"

  band  = "free"
  lease = "1h"
}
# condor: 1 jobs, 10 carried, 1 lost, 1 differ
