job "train" {
  command = ["echo", "hi"]
  transfer = "allways"
}
