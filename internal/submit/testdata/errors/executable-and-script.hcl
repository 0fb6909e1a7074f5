job "train" {
  executable = "./simulate"
  script = "echo"
}
