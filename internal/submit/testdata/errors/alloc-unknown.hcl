alloc "web" { count = 1 }
job "server" {
  in      = alloc.wed
  command = ["true"]
}
