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
#       Tasks that start together are all alike here: each asks for the most that one of these chunks does.
#       It becomes 3 tasks that start together, one for each machine, and each of them runs the whole script;
#       in PBS only the first machine does, and mpirun reaches the others. $ROOST_GANG_RANK, $ROOST_GANG_SIZE
#       and $ROOST_GANG_NODES say who is who.
#   line 7: pbsdsh hostname
#       There is no pbsdsh in Roost; what does its work is count and gang.
#   no -o, no -e
#       PBS then writes NAME.oNUMBER and NAME.eNUMBER; here the output is kept, and roost logs shows it.
#
# Variables of Torque that it reads, and what they are here:
#   PBS_ARRAYID    set by environment, below; $ROOST_TASK_INDEX counts from 0
#   PBS_NODEFILE   $ROOST_GANG_NODES, set at the top of the script
#   PBS_O_WORKDIR  $PWD, set at the top of the script

job "nodes" {
  count = 3
  gang  = 3

  shell = "/bin/bash"

  environment = {
    PBS_ARRAYID = 7 + floor(task.index / 3)
  }

  cpus   = 16
  memory = "4GiB"

  requirements = machine.bigmem
  spread       = "Machine"

  script = <<-END
    # What follows up to the empty line was added for Roost.
    for node in $(echo "$${ROOST_GANG_NODES:-$ROOST_NODE}" | tr , ' '); do for _ in $(seq 16); do echo "$node"; done; done > "$${TMPDIR:-/tmp}/nodes.$$"; export PBS_NODEFILE="$${TMPDIR:-/tmp}/nodes.$$"
    export PBS_O_WORKDIR="$PWD"

    cd $PBS_O_WORKDIR
    cat $PBS_NODEFILE | sort | uniq -c
    pbsdsh hostname
  END
}
# torque: 1 jobs, 3 carried, 1 lost, 5 differ
