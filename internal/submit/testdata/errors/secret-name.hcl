job "a" {
  command = ["/bin/sh"]
  secret "../etc/shadow" {}
}
