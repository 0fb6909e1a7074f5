job "train" {
  command = ["echo", "hi"]
  environment = { A = file("nope.txt") }
}
