# A web service with two to ten tasks. Each task counts the requests that it works on, and
# exports that as a metric; Roost keeps about ten requests in each. "roost show @web" says
# by which numbers it has its tasks. By hand: "roost scale @web 5".
job "web" {
  command = ["python3", "-c", local.server, "${port.http}"]
  memory  = "100MiB"

  service {
    drain = "5s"
  }

  port "http" {}

  check "up" {
    http  = "/"
    every = "5s"
  }

  autoscale {
    min         = 2
    max         = 10
    metric      = "requests_in_flight"
    port        = "http"
    target      = 10
    down_window = "2m"
  }

  update {
    max_down = 1
    settle   = "5s"
  }
}

locals {
  server = <<-EOT
    import http.server, sys, threading, time

    lock = threading.Lock()
    in_flight = 0

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            global in_flight
            if self.path == "/metrics":
                return self.answer("# TYPE requests_in_flight gauge\nrequests_in_flight " + str(in_flight) + "\n")
            if self.path == "/work":
                with lock:
                    in_flight += 1
                time.sleep(1)
                with lock:
                    in_flight -= 1
            self.answer("ok\n")

        def answer(self, text):
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
  EOT
}
