alloc "web" {
  count  = 2
  cpus   = 1
  memory = "1GiB"
}
job "server" {
  in      = alloc.web
  cpus    = 4
  memory  = "512MiB"
  command = ["true"]
}
job "client" {
  in      = alloc.web
  count   = 2
  memory  = "${task.index + 1}GiB"
  command = ["true"]
}
