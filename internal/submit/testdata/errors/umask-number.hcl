job "train" {
  command = ["echo", "hi"]
  umask = 22
}
