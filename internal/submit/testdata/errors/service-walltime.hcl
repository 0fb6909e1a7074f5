job "hub" {
  command  = ["/bin/echo"]
  walltime = "1h"
  service {}
}
