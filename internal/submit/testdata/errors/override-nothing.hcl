job "train" {
  command = ["echo", "hi"]
  override {
    memory = "8GiB"
  }
}
