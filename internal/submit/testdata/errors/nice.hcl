job "train" {
  command = ["echo", "hi"]
  nice    = 20
}
