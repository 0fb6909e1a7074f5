job "train" {
  command = ["echo", "hi"]
  gpu_memory = "0GiB"
}
