# A desktop. It submits jobs, and runs tasks of the pool while nobody uses it. The owner
# sets more in /etc/roost/owner.hcl.

pool        = "physics"
collectors  = ["10.0.0.1:9701"]
negotiators = ["10.0.0.1:9702"]

tls {
  ca          = "/etc/roost/ca.pem"
  certificate = "/etc/roost/node.pem"
  key         = "/etc/roost/node.key"
}

schedd {
  listen = ["10.0.0.57:9705"]
}

startd {
  listen = ["10.0.0.57:9703"]
  policy = "desktop"
  cpus   = 6
  memory = "12GiB"
  start  = "TARGET.Walltime > 0 && TARGET.Walltime <= 4*3600" # in addition: only short jobs

  # Tasks from other hosts run as users without an account here, and the owner's own
  # submit host may use the owner's account.
  accounts {
    trust "desk57" { users = ["ann"] }
  }
}
