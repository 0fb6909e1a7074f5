job "train" {
  command = ["echo", "hi"]
  hold = "yes"
}
