job "train" {
  command = ["echo", "hi"]
  gpu_memory = "9000PiB"
}
