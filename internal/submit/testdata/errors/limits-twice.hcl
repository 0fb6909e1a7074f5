job "a" {
  command = ["true"]
  limits = ["matlab", "Matlab"]
}
