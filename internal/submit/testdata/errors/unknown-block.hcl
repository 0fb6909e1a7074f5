job "train" {
  command = ["echo", "hi"]
  resources {
    cpus = 1
  }
}
