# A server of one of two labs that lend machines to each other: here physics, which calls
# the other one chemistry. The node file of a server there is the same with the names
# exchanged. The administrators agree once, each at the authority of the own pool:
#
#   physics#   roost peer offer chemistry --share 64 >for-chemistry
#   chemistry# roost peer accept for-chemistry
#   chemistry# roost peer offer physics --share 32 >for-physics
#   physics#   roost peer accept for-physics

pool = "physics"

collectors  = ["10.0.0.1:9701"]
negotiators = ["10.0.0.1:9702"]

tls {
  ca          = "/etc/roost/ca.pem"
  certificate = "/etc/roost/node.pem"
  key         = "/etc/roost/node.key"
}

# Borrow: tasks that have found no room here for two minutes are offered to chemistry. A
# job that has to stay says flock = false.
schedd {
  listen     = ["10.0.0.11:9705"]
  flock      = ["chemistry"]
  flock_wait = "2m"
}

# Lend: tasks of guests run on this machine as users that belong to no person, and only
# while no task of physics wants the room.
startd {
  listen = ["10.0.0.11:9703"]

  accounts {
    users  = "directory"
    guests = "slots"
  }
}
