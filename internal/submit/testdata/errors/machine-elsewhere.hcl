job "train" {
  command = ["echo", "hi"]
  cpus = machine.cpus
}
