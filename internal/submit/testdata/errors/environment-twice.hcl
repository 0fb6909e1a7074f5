job "train" {
  command = ["echo", "hi"]
  environment = { A = "1", A = "2" }
}
