# One address for the tasks of web.hcl, for programs that do not know where they are:
# "roost names front" tells it. The proxy follows the names of web's tasks, so that an
# update of web fails no request. It runs on machines that reach a schedd: submit nodes,
# and those where you have a login (roost login). In a pool of "roost up" it needs
# environment = { ROOST_DIR = "the pool's directory" }.
job "front" {
  script = <<-END
    exec roost proxy web:http --listen ":$ROOST_PORT_PROXY"
  END
  memory = "100MiB"
  notice = "40s"

  service {
    drain = "5s"
  }

  port "proxy" {}

  check "listens" {
    tcp   = true
    every = "5s"
  }
}
