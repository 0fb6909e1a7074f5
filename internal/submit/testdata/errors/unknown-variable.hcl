job "train" {
  command = ["echo", "hi"]
  cpus = var.coars
}
