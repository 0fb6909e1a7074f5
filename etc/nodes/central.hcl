# The central manager of a pool over several hosts: it knows what exists and decides who gets what.
# The three files of the tls block are made with
#   roost pki init /root/pool-ca
#   roost pki issue /root/pool-ca central collector negotiator

name = "central"
pool = "physics"

tls {
  ca          = "/etc/roost/ca.pem"
  certificate = "/etc/roost/central.pem"
  key         = "/etc/roost/central.key"
}

collector {
  listen = ["10.0.0.1:9701"]
}

negotiator {
  listen = ["10.0.0.1:9702"]
  cycle  = "5s" # the longest time between two cycles; whatever changes starts one at once
}
