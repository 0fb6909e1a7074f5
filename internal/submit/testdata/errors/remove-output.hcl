job "train" {
  command       = ["echo", "hi"]
  stdout        = "x"
  remove_output = ["stderr"]
}
