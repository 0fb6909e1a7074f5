job "train" {
  command = ["echo"]
  arguments = ["a"]
}
