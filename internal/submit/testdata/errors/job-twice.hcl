job "train" {
  command = ["echo", "hi"]
}
job "train" {
  command = ["echo", "hi"]
}
