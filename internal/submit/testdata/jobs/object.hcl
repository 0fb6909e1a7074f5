job "train" {
  count   = 2
  command = ["true"]
  inputs = {
    "model.bin" = "s3://models/base.bin"
    "part.csv"  = "s3://data/part-${task.index}.csv"
    "dir"       = "s3://data/common/"
  }
  outputs = {
    "result.csv" = "s3://results/${task.job}/${task.index}.csv"
    "plots"      = "s3://results/${task.job}/plots-${task.index}"
    "log.txt"    = "log-${task.index}.txt"
  }
}

job "list" {
  count   = 2
  command = ["true"]
  inputs  = ["s3://data/a/x.csv", "s3://data/a/${task.index}.csv"]
}
