job "train" {
  command = ["echo", "hi"]
  gpus = 1
  gpu_memory = "10 gibs"
}
