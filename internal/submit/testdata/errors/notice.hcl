job "train" {
  command = ["echo", "hi"]
  notice = "-5s"
}
