job "train" {
  command = ["echo", "hi"]
  count = 2
  band = task.index == 0 ? "batch" : "free"
}
