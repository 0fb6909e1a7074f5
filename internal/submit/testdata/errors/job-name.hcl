job "my job" {
  command = ["echo"]
}
