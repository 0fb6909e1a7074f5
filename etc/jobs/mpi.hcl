# An MPI program of MPICH, Intel MPI or MVAPICH: two tasks of four ranks, built by
#   mpicc.mpich -o ring ring.c
job "ring" {
  script = "exec ./ring"

  mpi       = "pmi1"
  count     = 2
  gang      = true
  apart     = true
  processes = 4
  cpus      = 4
  memory    = "1GiB"

  # All ranks have to find each other within this time.
  start_timeout = "60s"
  walltime      = "1h"
  stdout        = "ring.${task.index}.out"
  stderr        = "ring.${task.index}.err"
}
