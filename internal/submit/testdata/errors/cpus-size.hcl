job "train" {
  command = ["echo", "hi"]
  cpus = "10 GB"
}
