# A simulated pool of 1,000 machines with a service of 1,000 tasks. How long does an update
# take, and how many tasks are ready meanwhile?
#
#     roost sim run services.hcl --update web@10m
#     roost sim run services.hcl --update web@10m --drain "node1?@12m+1h"
#
# Change at_once, max_down or surge below, and run it again.
machines "node" {
  count  = 1000
  cpus   = 4
  memory = "16GiB"
}

job "web" {
  command = ["/bin/true"]
  count   = 1000
  cpus    = 2
  memory  = "2GiB"

  service {}

  check "up" {
    exec  = ["/bin/true"]
    every = "5s"
  }

  update {
    at_once  = "10%"
    max_down = "10%"
    settle   = "10s"
  }
}

# A task is ready within 20 seconds after its start.
load "web" {
  run = "20s"
}
