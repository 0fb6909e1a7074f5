locals {
  a = 1e300
  b = local.a * local.a
}
job "a" {
  command = ["echo", local.b, "1e999999999" + 1]
  cpus = tonumber("1e999999999")
}
