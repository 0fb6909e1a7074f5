job "web" {
  command = ["/bin/true"]
  service {
    logs {
      size = "10MiB"
    }
  }
}
