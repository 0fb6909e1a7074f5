job "train" {
  command = ["echo", "hi"]
  requirements = machine.memry >= "4GiB"
}
