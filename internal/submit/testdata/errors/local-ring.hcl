locals {
  a = local.b
  b = local.a
}
job "train" {
  command = ["echo", "hi"]
}
