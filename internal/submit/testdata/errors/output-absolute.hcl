job "train" {
  command = ["echo", "hi"]
  transfer = "always"
  outputs = ["/tmp/result.csv"]
}
