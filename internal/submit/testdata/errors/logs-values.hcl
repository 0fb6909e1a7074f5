job "web" {
  command = ["/bin/echo"]
  stdout  = "web.log"
  service {}
  logs {
    size  = 10
    files = 1
    keep  = "2y"
  }
}

job "small" {
  command = ["/bin/echo"]
  service {}
  logs {
    size = "1KiB"
    keep = "400d"
  }
}

job "text" {
  command = ["/bin/echo"]
  service {}
  logs { size = "big" }
}

job "unknown" {
  command = ["/bin/echo"]
  service {}
  logs { rate = 1 }
}
