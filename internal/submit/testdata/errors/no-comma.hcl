job "train" {
  command = ["echo" "hi"]
}
