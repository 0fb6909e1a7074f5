alloc "web" {
  count   = 1
  command = ["true"]
}
