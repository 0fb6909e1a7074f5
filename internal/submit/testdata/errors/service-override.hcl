job "hub" {
  command = ["/bin/echo"]
  count   = 2
  service {}
  override {
    tasks    = [0]
    walltime = "1h"
  }
}
