job "web" {
  command = ["true"]
  count   = 2
  service {}
  port "http" {
    static = 20001
  }
  update {
    max_down = 2
  }
}
