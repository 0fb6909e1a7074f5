# A pool on one server, for all its users: every daemon, on unix sockets. Start it with
#   roost master --config /etc/roost/node.hcl
# Users need no setting: roost and qsub find the socket in /run/roost.

collector {}
negotiator {}
schedd {}

startd {
  # What is not said is measured: all cores, all memory.
  attributes = {
    HasScratch = true
    Site       = "\"machine room\"" # the text of an expression: a text has its own quotes
  }
}
