# Somebody's desktop: it submits, and lends what its owner can spare while nobody is at it. He says more in /etc/roost/owner.hcl.

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
  start  = "TARGET.Walltime > 0 && TARGET.Walltime <= 4*3600" # besides: only short jobs

  # Tasks that come from elsewhere run as users who are nobody here, and those of the owner's own submit host as themselves.
  accounts {
    trust "desk57" { users = ["ann"] }
  }
}
