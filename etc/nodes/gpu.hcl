# A server with GPUs. Each GPU has four cores of its own NUMA node, and the other cores
# run tasks without GPUs.

pool        = "physics"
collectors  = ["10.0.0.1:9701"]
negotiators = ["10.0.0.1:9702"]

tls {
  ca          = "/etc/roost/ca.pem"
  certificate = "/etc/roost/node.pem"
  key         = "/etc/roost/node.key"
}

startd {
  listen        = ["10.0.0.21:9703"]
  layout        = "pinned" # or "shared" if few tasks want a GPU, "even" if all do
  cores_per_gpu = 4
  cpu_units     = "numa"

  # Short tasks may wait here, so that the next one starts the moment one ends; but none
  # that would wait longer than this.
  queue {
    max_wait = "2m"
  }

  # No startd at all rather than tasks that see each other's GPUs.
  limits {
    enforce = "must"
    sandbox = "must"
  }
}
