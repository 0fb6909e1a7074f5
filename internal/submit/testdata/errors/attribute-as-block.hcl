job "train" {
  command = ["echo", "hi"]
  environment {
    A = "1"
  }
}
