job "train" {
  command = ["echo",
  cpus = 1
}
