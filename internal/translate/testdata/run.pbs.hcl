# Made of run.pbs, which was written for PBS, by roost translate; see roost-job(5) and roost-coming-from(7).
#
# Not carried over:
#   line 9: #PBS -W depend=afterok:12.srv:13.srv,umask=022
#       The ids are those of the other system. With the id of the job here write depends_on = ["ID"]; a job of
#       the same file is job.NAME, or { id = job.NAME, when = "afterany" }.
#
# Different here:
#   line 6: #PBS -q workq
#       The administrator makes a queue with roost queue set; roost queue lists them.
#   -o, -e
#       $PBS_JOBID is the number of the job in the name of a file here, without the server.
#
# Variables of PBS that it reads, and what they are here:
#   OMP_NUM_THREADS  set by environment, below
#   PBS_JOBID        $ROOST_JOB_ID, set at the top of the script
#   PBS_O_WORKDIR    $PWD, set at the top of the script

job "sim.one" {
  shell = "/bin/bash"

  umask  = "022"
  getenv = ["DATA"]
  environment = {
    SEED            = "7"
    NOTE            = "a,b"
    OMP_NUM_THREADS = 8
  }

  stdout       = "logs/${task.job}.OU"
  join_output  = true
  empty_output = true

  cpus     = 8
  memory   = "16GiB"
  gpus     = 1
  walltime = "2h"

  queue      = "workq"
  group      = "physics"
  rerunnable = false
  mail_on    = ["abort", "begin", "end"]
  mail_to    = ["ann@example.org"]

  script = <<-END
    # What follows up to the empty line was added for Roost.
    export PBS_JOBID="$ROOST_JOB_ID"
    export PBS_O_WORKDIR="$PWD"

    cd $PBS_O_WORKDIR
    ./simulate --threads $OMP_NUM_THREADS > sim.$PBS_JOBID.log
  END
}
# pbs: 1 jobs, 12 carried, 1 lost, 2 differ
