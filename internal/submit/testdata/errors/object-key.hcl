job "train" {
  command = ["echo", "hi"]
  inputs = { "x.csv" = "s3://data/a/../x.csv" }
}
