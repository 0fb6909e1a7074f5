job "train" {
  command = ["echo", "hi"]
  gpus = 0
  gpu_memory = "10GiB"
}
