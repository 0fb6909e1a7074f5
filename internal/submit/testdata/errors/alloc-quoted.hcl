alloc "web" { count = 1 }
job "server" {
  in      = "web"
  command = ["true"]
}
