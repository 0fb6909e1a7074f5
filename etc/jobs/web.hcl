# A web service of three tasks, which are kept running. "roost names web" tells where they
# are, and lists only those that answer. After a change of this file, "roost update
# web.hcl" replaces them one after another.
job "web" {
  command = ["python3", "-m", "http.server", "${port.http}"]
  count   = 3
  memory  = "100MiB"

  service {
    drain = "5s"
  }

  port "http" {}

  check "up" {
    http  = "/"
    every = "5s"
  }

  update {
    max_down = 1
    settle   = "5s"
  }
}
