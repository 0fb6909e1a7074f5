job "train" {
  executable = "echo"
  arguments = "a b"
}
