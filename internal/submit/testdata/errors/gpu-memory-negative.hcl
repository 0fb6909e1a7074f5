job "train" {
  command = ["echo", "hi"]
  gpu_memory = "-1GiB"
}
