job "a" {
  command = ["/bin/sh"]
  secret { env = "A" }
}
