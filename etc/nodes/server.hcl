# A dedicated server: people submit here, and it runs what the pool sends.

pool = "physics"

# Hosts that name the same domain see the same files: tasks run where their files are, and nothing is copied.
file_system_domain = "physics.example"

collectors  = ["10.0.0.1:9701"]
negotiators = ["10.0.0.1:9702"]

tls {
  ca          = "/etc/roost/ca.pem"
  certificate = "/etc/roost/node.pem"
  key         = "/etc/roost/node.key"
}

schedd {
  listen       = ["10.0.0.11:9705"] # for the other schedds, which show the jobs of the whole pool
  job_lease    = "40m" # so long running tasks live on when this schedd is away
  keep_history = "365d"
}

startd {
  listen = ["10.0.0.11:9703"]
  cpus   = 62 # two are kept for the system
  memory = "248GiB"

  # Whose word counts: the login nodes name everybody who has an account here, and nobody else names anybody.
  accounts {
    users = "directory"
    trust "login*" { users = ["*"] }
  }
}
