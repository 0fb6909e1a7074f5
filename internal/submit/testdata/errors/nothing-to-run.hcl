job "train" {
  cpus = 1
}
