# Providers of pilots for ~/.config/roost/pilots.hcl; roost-pilots(5) describes them. Tasks
# go to the first that has room for them.

# A Slurm cluster of the university, reached by ssh without a password.
provider "uni" {
  kind           = "slurm"
  walltime       = "12h"
  via            = ["ssh", "login.uni.example"]
  options        = ["--account=physics", "--partition=short"]
  program        = "~/roost/bin/roost"
  directory      = "~/roost/pilots"
  max_pilots     = 40
  max_node_hours = 500

  node {
    cpus   = 32
    memory = "120GiB"
  }
}

# A PBS server in the next room. The first pilot shows what its nodes are like.
provider "lab" {
  kind     = "pbs"
  walltime = "4h"
  options  = ["-q", "workq"]
  before   = "module load roost"
}

# Anything else, by four programs.
provider "cloud" {
  kind           = "command"
  walltime       = "2h"
  idle           = "2m"
  max_node_hours = 100

  programs {
    submit = ["cloud-submit"]
    status = ["cloud-status"]
    cancel = ["cloud-cancel"]
    facts  = ["cloud-facts"]
  }
}
