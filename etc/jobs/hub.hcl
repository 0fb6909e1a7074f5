# A notebook hub that is kept running. "roost wait --ready @hub" returns when it can be
# used, and "roost names hub" says at which address and port. The hub keeps its users and
# its cookies in the directory below, which all machines have to see: another machine
# goes on with them when this one is lost.
variable "hub" {
  type        = string
  default     = "jupyterhub"
  description = "the program, such as --var hub=/opt/hub/bin/jupyterhub"
}

job "hub" {
  script = <<-END
    cd "$HOME/hub"
    exec ${var.hub} --url "http://$ROOST_ADDR_HTTP/"
  END
  cpus   = 2
  memory = "2GiB"
  notice = "30s"

  service {
    # A hub that has just begun to fail is tried again soon, and one that fails all the
    # time not more often than every 5 minutes.
    backoff {
      first = "2s"
      max   = "5m"
    }
  }

  port "http" {}

  # Until its first answer it may take 2 minutes. Later it is out of service after three
  # failures in a row, and started again if it does not even take a connection.
  check "up" {
    http         = "/hub/health"
    start_within = "2m"
  }

  check "alive" {
    tcp          = true
    for          = "live"
    every        = "30s"
    start_within = "2m"
    fails        = 4
  }
}
