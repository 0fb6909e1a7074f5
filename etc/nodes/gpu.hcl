# A server with graphics cards: every card has four cores of its own memory node, and the other cores run what needs no card.

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
  layout        = "pinned" # or "shared" where few tasks want a GPU, "even" where all do
  cores_per_gpu = 4
  cpu_units     = "numa"

  # Short tasks may wait here, so that the next one starts the moment one ends; but none that would wait for longer than this.
  queue {
    max_wait = "2m"
  }

  # Rather no startd than tasks that see each other's cards.
  limits {
    enforce = "must"
    sandbox = "must"
  }
}
