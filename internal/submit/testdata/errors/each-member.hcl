job "train" {
  command = ["echo", "hi"]
  for_each = [{a = 1}, {b = 2}]
  environment = { A = each.value.a }
}
