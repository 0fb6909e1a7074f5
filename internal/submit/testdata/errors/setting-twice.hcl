job "train" {
  command = ["echo", "hi"]
  cpus = 1
  cpus = 2
}
