job "train" {
  command = ["echo", "hi"]
  getenv = ["LANGUAGE"]
}
