job "web" {
  command = ["/bin/echo"]
  service {}
  vertical_autoscale {
    min_memory = "4GiB"
    max_memory = "2GiB"
  }
}
