job "train" {
  command = ["echo", "hi"]
  cpus = -1
}
