alloc "web" { count = 2 }
job "server" {
  in      = alloc.web
  count   = 3
  command = ["true"]
}
