alloc "web" { count = 1 }
job "server" {
  in      = alloc.web
  place   = "anywhere"
  command = ["true"]
}
job "other" {
  place   = "any"
  command = ["true"]
}
