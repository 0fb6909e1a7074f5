# The central manager of a pool over several hosts: it collects the ads and matches
# requests with machines. With three of them the pool survives the loss of one. Give each
# its own name and addresses in a file like this, and give all nodes of the pool the lists
# of all three:
#  collectors  = ["10.0.0.1:9701", "10.0.0.2:9701", "10.0.0.3:9701"]
#  negotiators = ["10.0.0.1:9702", "10.0.0.2:9702", "10.0.0.3:9702"]
# The three files of the tls block are made with
#  roost pki init /root/pool-ca
#  roost pki issue /root/pool-ca central collector negotiator

name = "central"
pool = "physics"

tls {
  ca          = "/etc/roost/ca.pem"
  certificate = "/etc/roost/central.pem"
  key         = "/etc/roost/central.key"
}

collector {
  listen = ["10.0.0.1:9701"]
  # the names of services over DNS, see roost-collector(8)
  #dns {
  #  listen = ["10.0.0.1:53"]
  #}
}

negotiator {
  listen = ["10.0.0.1:9702"]
  cycle  = "5s" # the longest time between two cycles; any change starts one at once
}

# A queue that the three keep together, so that its jobs outlive any host; see
# roost-cell-queue(8). The certificate then needs schedd and cell-queue, too.
#cell_queue {
#  listen  = ["10.0.0.1:9726"]
#  member  = "10.0.0.1:9727"
#  members = ["10.0.0.1:9727", "10.0.0.2:9727", "10.0.0.3:9727"]
#}

# For Prometheus, see roost-metrics(7) and ../prometheus: readers show a certificate of the
# pool, or a token from a file.
#metrics {
#  collector  = "10.0.0.1:9711"
#  negotiator = "10.0.0.1:9712"
#  token_file = "/etc/roost/metrics.token"
#}
