# A web server on two machines, each with a program beside it that stores its logs. Both
# run inside allocs: parts of machines that stay reserved while either is started anew.
#
#   roost submit alloc.hcl
#   roost show @web         what is held open
#   roost rm @web           ends the servers and log savers, and gives the machines back

alloc "web" {
  count  = 2
  cpus   = 0.5
  memory = "256MiB"
}

job "server" {
  in      = alloc.web
  count   = 2
  cpus    = 0.25
  memory  = "128MiB"
  command = ["python3", "-m", "http.server", "${port.http}"]
  service {}
  port "http" {}
}

job "log-saver" {
  in     = alloc.web
  count  = 2
  cpus   = 0.1
  memory = "64MiB"
  script = <<-EOS
    trap 'exit 0' TERM
    while :; do date; sleep 60 & wait $!; done
  EOS
  service {}
}
