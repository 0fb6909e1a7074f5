job "train" {
  executable = "./simulate
  cpus = 1
}
