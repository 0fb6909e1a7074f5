job "a" {
  command = ["echo", each.value.x]
  indexes = "1-5"
}
