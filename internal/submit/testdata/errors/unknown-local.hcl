job "train" {
  command = ["echo", "hi"]
  cpus = local.n
}
