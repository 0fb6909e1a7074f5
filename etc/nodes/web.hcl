# A submit node with pages and the HTTP API for its users, by TLS of its own. roost-web(8)
# tells how they log in. Behind nginx or Caddy (see etc/web) the block is
#
#   web {
#     listen = ["unix:/run/roost/web.sock"]
#     url    = "https://roost.example.org"
#   }
#
# The daemon runs as the account roost-web. Where systemd-sysusers has not made it:
# useradd --system --no-create-home roost-web

name        = "login1"
collectors  = ["10.0.0.1:9701"]
negotiators = ["10.0.0.1:9702"]

tls {
  ca          = "/etc/roost/ca.pem"
  certificate = "/etc/roost/node.pem"
  key         = "/etc/roost/node.key"
}

schedd {
  listen = ["10.0.0.5:9705"]
}

web {
  listen      = ["10.0.0.5:9780"]
  names       = ["roost.example.org"]
  url         = "https://roost.example.org:9780"
  certificate = "/etc/roost/web.pem" # of an authority that browsers know
  key         = "/etc/roost/web.key"
}
