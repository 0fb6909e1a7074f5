job "hub" {
  command = ["/bin/echo"]
  service { }
  update { resize = "inplace" }
}
