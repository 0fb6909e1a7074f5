job "train" {
  script = ""
}
