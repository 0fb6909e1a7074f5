job "a" {
  command = ["/bin/sh"]
  secret "db" {}
  secret "db" {}
}
