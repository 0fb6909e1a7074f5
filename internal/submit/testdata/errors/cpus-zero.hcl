job "train" {
  command = ["echo", "hi"]
  cpus = 0
}
