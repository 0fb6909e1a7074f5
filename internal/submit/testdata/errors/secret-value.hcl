job "a" {
  command = ["/bin/sh"]
  secret "db" { value = "sesame" }
}
