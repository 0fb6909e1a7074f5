job "train" {
  command: ["echo"]
}
