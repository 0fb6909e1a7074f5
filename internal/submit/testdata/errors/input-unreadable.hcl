job "train" {
  command = ["echo", "hi"]
  inputs = ["secret.txt"]
}
