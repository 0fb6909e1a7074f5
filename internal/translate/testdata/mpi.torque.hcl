# Made of mpi.torque, which was written for Torque, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Not carried over:
#   line 4: #PBS -l walltime=90:00:00,cput=10:00
#       There is no limit on CPU time; walltime limits the time that it runs. ulimit -t in the script limits
#       that of a process.
#   line 8: #PBS -k oe
#       Output goes where stdout and stderr say, and is there while the job runs.
#   line 9: #PBS -Z x
#       qsub has no option -Z.
#   %
#       How many tasks run at once cannot be said of tasks that start together.
#
# Different here:
#   line 1: #!/bin/csh -f
#       The options of the interpreter are not passed on: the script is handed to it as a file.
#   line 3: #PBS -l nodes=4:ppn=8:gpus=1:infiniband,pmem=2gb
#       A feature is an attribute of the machines here, which their administrator adds in the node file:
#       attributes = { infiniband = true }; see roost-node(5).
#       It is memory of each process; memory is that of all processes of a machine.
#       It becomes 4 tasks that start together, one for each machine, and each of them runs the whole script;
#       in PBS only the first machine does, and mpirun reaches the others. $ROOST_GANG_RANK, $ROOST_GANG_SIZE
#       and $ROOST_GANG_NODES say who is who.
#   line 11: mpirun -np 32 -machinefile $PBS_NODEFILE ./cfd case.$PBS_ARRAYID
#       Here every one of the 4 tasks runs the whole script, and each would start this. Let only the first do
#       it, [ "$ROOST_GANG_RANK" = 0 ] && …, with the machines of $ROOST_GANG_NODES; or, on one large machine,
#       remove gang and count and ask for all the cores at once.
#   no -o, no -e
#       PBS then writes NAME.oNUMBER and NAME.eNUMBER; here the output is kept, and roost logs shows it.
#   $PBS_NODEFILE
#       The script, which no Bourne shell runs, reads a variable that Roost calls ROOST_GANG_NODES.
#
# Variables of Torque that it reads, and what they are here:
#   PBS_ARRAYID   set by environment, below; $ROOST_TASK_INDEX counts from 0
#   PBS_NODEFILE  $ROOST_GANG_NODES: not set under the old name, as only a shell's script could; read it under the new one

job "cfd" {
  count = 16
  gang  = 4

  shell = "/bin/csh"

  directory = "/scratch/cfd"
  getenv    = true
  environment = {
    PBS_ARRAYID = element([1, 4, 5, 6], floor(task.index / 4))
  }

  cpus     = 8
  memory   = "16GiB"
  gpus     = 1
  walltime = "3d18h"

  requirements = machine.infiniband
  spread       = "Machine"

  script = <<-END
    #!/bin/csh -f
    setenv RUN $PBS_ARRAYID
    mpirun -np 32 -machinefile $PBS_NODEFILE ./cfd case.$PBS_ARRAYID
  END
}
# torque: 1 jobs, 6 carried, 4 lost, 7 differ
