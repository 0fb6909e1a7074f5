# Somebody's desktop: it submits, and lends what its owner can spare to short jobs at night.

pool        = "physics"
collectors  = ["10.0.0.1:9701"]
negotiators = ["10.0.0.1:9702"]

tls {
  ca          = "/etc/roost/ca.pem"
  certificate = "/etc/roost/node.pem"
  key         = "/etc/roost/node.key"
}

schedd {}

startd {
  listen = ["10.0.0.57:9703"]
  cpus   = 6
  memory = "12GiB"
  start  = "TARGET.Walltime <= 3600"
}
