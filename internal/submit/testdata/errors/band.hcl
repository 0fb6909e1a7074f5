job "train" {
  command = ["echo", "hi"]
  band = "prodction"
}
