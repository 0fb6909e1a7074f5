job "train" {
  command = ["echo", "hi"]
  depends_on = ["train"]
}
