job "train" {
  command = ["echo", "hi"]
  requirements = "Arch == \"x86\" &&& true"
}
