job "train" {
  command = ["echo", "hi"]
  requirements = "Memory >= && Arch"
}
