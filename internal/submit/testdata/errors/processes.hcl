job "a" {
  command   = ["echo", "hi"]
  processes = 1.5
}
