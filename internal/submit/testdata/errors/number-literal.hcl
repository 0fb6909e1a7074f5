job "a" {
  command = ["echo"]
  count = 1e999999999
}
