job "ü" {
  command = ["echo"]
  labels = { x = "日本", y = foo }
}
