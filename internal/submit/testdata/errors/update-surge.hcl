job "hub" {
  for_each = ["a", "b"]
  command  = ["/bin/echo", each.value]
  service { }
  update {
    surge    = 1
    max_down = 0
  }
}
