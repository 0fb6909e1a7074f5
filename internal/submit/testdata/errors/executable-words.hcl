job "train" {
  executable = "python3 train.py"
}
