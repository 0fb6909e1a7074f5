job "train" {
  executable = "notes.txt"
}
