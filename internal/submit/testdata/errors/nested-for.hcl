job "train" {
  command = ["echo", "hi"]
  labels = { x = length([for a in range(1000000) : [for b in range(1000000) : b]]) }
}
