job "train" {
  command = ["echo", "hi"]
  directory = "wrok"
}
