# A model server of which nobody knows how much memory it will need. Each task gets the
# cores and the memory that the tasks of the service use, and a quarter more, where it
# runs. "roost show @model" says by which numbers, and "roost history" has each change.
job "model" {
  command = ["python3", "-c", local.server, "${port.http}"]
  count   = 2
  cpus    = 0.5
  memory  = "256MiB"

  service {
    drain = "5s"
  }

  port "http" {}

  check "up" {
    http  = "/"
    every = "5s"
  }

  vertical_autoscale {
    min_cpus   = 0.2
    max_cpus   = 4
    min_memory = "128MiB"
    max_memory = "8GiB"
    window     = "30m"
    every      = "5m"
  }

  update {
    at_once  = 1
    max_down = 1
    settle   = "5s"
  }
}

locals {
  server = <<-EOT
    import http.server, sys

    models = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/load":
                models.append(bytearray(64 << 20))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"%d models\n" % len(models))

    http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
  EOT
}
