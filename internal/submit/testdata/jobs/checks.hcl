job "hub" {
  command = ["/bin/echo"]
  service {
    drain = "10s"
  }
  check "up" {
    exec         = ["sh", "-c", "test -e $HOME/up"]
    for          = "live"
    every        = "30s"
    timeout      = "2s"
    fails        = 5
    passes       = 2
    start_within = "5m"
  }
  check "least" { exec = ["true"] }
}
