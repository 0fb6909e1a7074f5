# Made of nodes.torque, which was written for Torque, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Not carried over:
#   line 2: #PBS -l mem=12gb \
#       "#PBS_continued" is no option; it is ignored.
#
# Different here:
#   line 1: #PBS -l nodes=2:ppn=4+1:ppn=16:bigmem
#       A feature is an attribute of the machines here, which their administrator adds in the node file:
#       attributes = { bigmem = true }; see roost-node(5).
#       Each index of the array becomes 3 tasks that start together, one for each machine. Each of them runs
#       the whole script and asks for the most that one chunk does; in PBS only the first machine runs it.
#       $ROOST_GANG_RANK, $ROOST_GANG_SIZE and $ROOST_GANG_NODES tell the tasks apart.
#   nodes.oNUMBER.INDEX
#       Each task of a gang needs a file of its own: its number was added.
#
# Variables of Torque that it reads, and what they are here:
#   PBS_ARRAYID    set by environment, below; $ROOST_TASK_INDEX counts from 0
#   PBS_NODEFILE   set by Roost itself, for processes, below
#   PBS_O_WORKDIR  $PWD, set at the top of the script

job "nodes" {
  count = 3
  gang  = 3

  shell = "/bin/bash"

  environment = {
    PBS_ARRAYID = 7 + floor(task.index / 3)
  }

  stdout       = "nodes.o${task.job}.${7 + floor(task.index / 3)}.${task.index}"
  stderr       = "nodes.e${task.job}.${7 + floor(task.index / 3)}.${task.index}"
  empty_output = true

  cpus      = 16
  memory    = "4GiB"
  processes = 16

  requirements = machine.bigmem
  spread       = "Machine"

  script = <<-END
    # What follows up to the empty line was added for Roost.
    export PBS_O_WORKDIR="$PWD"

    cd $PBS_O_WORKDIR
    cat $PBS_NODEFILE | sort | uniq -c
    pbsdsh hostname
  END
}
# torque: 1 jobs, 3 carried, 1 lost, 3 differ
