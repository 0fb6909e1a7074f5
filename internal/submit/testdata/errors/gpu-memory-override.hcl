job "train" {
  command = ["echo", "hi"]
  count = 4
  override {
    tasks = [1]
    gpus = 0
    gpu_memory = "1GiB"
  }
}
