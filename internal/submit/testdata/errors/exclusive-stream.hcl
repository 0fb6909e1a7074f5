job "serve" {
  command   = ["true"]
  app_class = "stream"
  exclusive = true
}
