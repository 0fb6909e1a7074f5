job "train" {
  command = ["echo", "hi"]
  requirements = split(",", machine.name) == ["a"]
}
