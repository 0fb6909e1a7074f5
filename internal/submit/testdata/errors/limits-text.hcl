job "a" {
  command = ["true"]
  limits = "matlab, ansys:2"
}
