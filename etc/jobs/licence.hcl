# A licence server. Its clients know its port, so that it has the same number on every
# machine, and find the machine by the name: licence.USER.CELL.roost.internal, or
# "roost names licence". Two of it must never run together: as overlap is false, another
# machine starts it only when it has certainly ended on one that does not answer.
variable "lmgrd" {
  type        = string
  default     = "lmgrd"
  description = "the program, such as --var lmgrd=/opt/flexlm/lmgrd"
}

job "licence" {
  script = "exec ${var.lmgrd} -z -c \"$HOME/licence/licence.dat\""
  cpus   = 0.5
  memory = "256MiB"

  service {
    overlap  = false
    restarts = 3 # on one machine within 10 minutes, then it gets another one
    drain    = "0s"
  }

  port "lmgrd" {
    static = 7700
  }

  check "up" {
    tcp   = true
    every = "10s"
    fails = 2
  }

  # The only task may be down for an update or a drained node.
  update {
    max_down = 1
    settle   = "30s"
  }
}
