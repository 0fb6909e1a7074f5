job "a" {
  command = ["/bin/sh"]
  secret "db" { on_change = "reload" }
}
