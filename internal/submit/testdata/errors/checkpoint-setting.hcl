job "train" {
  command = ["/bin/echo"]
  checkpoint {
    interval = "1h"
  }
}
