job "a" {
  command = ["true"]
  packages = ["gcc", ""]
}
