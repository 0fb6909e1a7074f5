job "train" {
  command = ["/bin/echo"]
  checkpoint {
    enabled = false
    every   = "1h"
  }
}
