job "train" {
  command = ["echo", "hi"]
  environment = { "A B" = "1" }
}
