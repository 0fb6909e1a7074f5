job "train" {
  script = "echo"
  shell = "/bin/fish"
}
