job "train" {
  command = ["echo", "hi"]
  count = 2
  override {
    tasks = [5]
    memory = "8GiB"
  }
}
