job "train" {
  executable = "pyhton3"
}
