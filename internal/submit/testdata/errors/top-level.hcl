jobs "a" {
  command = ["echo"]
}
