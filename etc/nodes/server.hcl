# A dedicated server: users submit here, and it runs tasks of the pool.

pool = "physics"

# Hosts with the same domain share their files: tasks run where their files are, and
# nothing is copied.
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
  job_lease    = "40m" # running tasks continue for so long while this schedd is unreachable
  keep_history = "365d"
}

startd {
  listen = ["10.0.0.11:9703"]
  cpus   = 62 # two are reserved for the system
  memory = "248GiB"

  # The trusted hosts: login nodes may use every account here, and other hosts none.
  accounts {
    users = "directory"
    trust "login*" { users = ["*"] }
  }
}
