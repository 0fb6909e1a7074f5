job "a" {
  command = ["[31mecho"]
  cpuss = "[2J"
}
