alloc "web" { count = 1 }
job "server" {
  cpus    = alloc.web
  command = ["true"]
}
