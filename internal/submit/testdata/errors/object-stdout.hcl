job "train" {
  command = ["echo", "hi"]
  stdout = "s3://data/log"
}
