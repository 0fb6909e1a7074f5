job "train" {
  command = ["echo", "hi"]
  requirements = machine.memory >= 4
}
