# café
job "a" {
  command = ["echo"]
}
