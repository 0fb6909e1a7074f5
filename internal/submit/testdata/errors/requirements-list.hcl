job "train" {
  command = ["echo", "hi"]
  requirements = ["a"]
}
