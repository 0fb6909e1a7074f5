job "train" {
  count   = 3
  command = ["echo", "hi"]
  inputs  = ["s3://data/${["a", "b\n", "c"][task.index]}"]
}
