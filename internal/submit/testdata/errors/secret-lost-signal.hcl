job "a" {
  command = ["/bin/sh"]
  secret "db" { signal = "HUP" }
}
