job "train" {
  command = ["echo", "hi"]
  for_each = ["a", "z"]
  inputs = ["data/${each.value}.csv"]
}
