# Made of mpi.torque, which was written for Torque, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Not carried over:
#   line 9: #PBS -Z x
#       qsub has no option -Z.
#   %
#       How many tasks run at once cannot be said of tasks that start together.
#
# Different here:
#   line 1: #!/bin/csh -f
#       The options of the interpreter are not passed on: the script is passed to it as a file.
#   line 3: #PBS -l nodes=4:ppn=8:gpus=1:infiniband,pmem=2gb
#       A feature is an attribute of the machines here, which their administrator adds in the node file:
#       attributes = { infiniband = true }; see roost-node(5).
#       Each index of the array becomes 4 tasks that start together, one for each machine. Each of them runs
#       the whole script and asks for the most that one chunk does; in PBS only the first machine runs it.
#       $ROOST_GANG_RANK, $ROOST_GANG_SIZE and $ROOST_GANG_NODES tell the tasks apart.
#   line 11: mpirun -np 32 -machinefile $PBS_NODEFILE ./cfd case.$PBS_ARRAYID
#       Here every one of the 4 tasks runs the whole script, and each would start this. Let only the first do
#       it, [ "$ROOST_GANG_RANK" = 0 ] && …, with the machines of $ROOST_GANG_NODES; or, on one large machine,
#       remove gang and count and ask for all the cores at once.
#   ~/cfd.oNUMBER.INDEX
#       Each task of a gang needs a file of its own: its number was added.
#
# Variables of Torque that it reads, and what they are here:
#   PBS_ARRAYID   set by environment, below; $ROOST_TASK_INDEX counts from 0
#   PBS_NODEFILE  set by Roost itself, for processes, below

job "cfd" {
  count = 16
  gang  = 4

  shell = "/bin/csh"

  directory = "/scratch/cfd"
  getenv    = true
  environment = {
    PBS_ARRAYID = element([1, 4, 5, 6], floor(task.index / 4))
  }

  stdout       = "~/cfd.o${task.job}.${element([1, 4, 5, 6], floor(task.index / 4))}.${task.index}"
  stderr       = "~/cfd.e${task.job}.${element([1, 4, 5, 6], floor(task.index / 4))}.${task.index}"
  empty_output = true

  cpus      = 8
  memory    = "16GiB"
  gpus      = 1
  processes = 8
  walltime  = "3d18h"

  cpu_time       = "10m"
  process_memory = "2GiB"

  requirements = machine.infiniband
  spread       = "Machine"

  script = <<-END
    #!/bin/csh -f
    setenv RUN $PBS_ARRAYID
    mpirun -np 32 -machinefile $PBS_NODEFILE ./cfd case.$PBS_ARRAYID
  END
}
# torque: 1 jobs, 7 carried, 2 lost, 5 differ
