job "train" {
  command = ["echo", "hi"]
  app_class = 1
}
