job "hub" {
  command = ["/bin/echo"]
  service { }
  update { on_failure = "und" }
}
