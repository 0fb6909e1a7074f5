# A web server whose program and pages are a package. Put a version into the pool, and
# have the label live name it:
#
#     roost package push build web@1.4
#     roost package label web@live web@1.4
#
# The next version comes to the tasks with another push and label, and then
#
#     roost update package.hcl
#
# which replaces one task after the other. To go back, move the label back, and update.

job "pages" {
  command = ["python3", "-m", "http.server", "--directory", "/app", "${port.http}"]
  count   = 2
  memory  = "100MiB"

  package "web@live" {
    at = "/app" # the tasks read it there; the machine needs no such directory
  }

  service {}

  port "http" {}

  check "up" {
    http = "/"
  }

  update {
    max_down = 1
  }
}
