job "a" {
  command = ["/bin/sh"]
  secret {}
}
