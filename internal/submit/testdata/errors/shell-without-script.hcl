job "train" {
  command = ["echo", "hi"]
  shell = "/bin/bash"
}
