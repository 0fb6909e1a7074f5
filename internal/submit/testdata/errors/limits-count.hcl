job "a" {
  command = ["true"]
  limits = ["matlab:0"]
}
