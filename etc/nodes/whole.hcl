# A pool on one server, for all its users: every daemon, on unix sockets. Start it with
#  roost master --config /etc/roost/node.hcl
# Users need no settings: roost and qsub find the socket in /run/roost.

collector {}
negotiator {}
schedd {}

startd {
  # Other values are measured: all cores, all memory.
  attributes = {
    HasScratch = true
    Site       = "\"machine room\"" # an expression: a text has its own quotes
  }
}
