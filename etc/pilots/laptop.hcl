# A laptop, and an account on a Slurm cluster: ~/.config/roost/pilots.hcl. On the laptop,
# "roost up" is the pool, and "roost pilots run" gets machines of the cluster while tasks
# wait. Each goes again when it has had nothing to do for five minutes.
provider "cluster" {
  kind           = "slurm"
  via            = ["ssh", "login.uni.example"] # without a password, as with an ssh agent
  options        = ["--account=mine", "--partition=short"]
  program        = "~/roost/bin/roost" # on the cluster
  directory      = "~/roost/pilots"
  walltime       = "2h"
  idle           = "5m"
  max_pilots     = 10
  max_queued     = 2
  max_node_hours = 50 # a day: no more than that is ever asked for

  node {
    cpus   = 16
    memory = "60GiB"
  }
}
