alloc "web" { count = 2 }
job "server" {
  in           = alloc.web
  count        = 2
  gang         = 2
  requirements = machine.Arch == "X86_64"
  band         = "free"
  command      = ["true"]
}
