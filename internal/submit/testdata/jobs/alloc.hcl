alloc "web" {
  count        = 3
  cpus         = 2
  memory       = "2GiB"
  requirements = machine.Arch == "X86_64"
}

job "server" {
  in      = alloc.web
  count   = 3
  cpus    = 1
  command = ["true"]
  service {}
}

job "log-saver" {
  in      = alloc.web
  count   = 3
  cpus    = 0.5
  memory  = "256MiB"
  command = ["true"]
}

job "night" {
  in      = "123"
  place   = "any"
  count   = 100
  command = ["true"]
}
