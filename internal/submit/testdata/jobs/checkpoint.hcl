job "often" {
  command  = ["/bin/echo"]
  walltime = "2h"
  checkpoint {
    every           = "30m"
    on_vacate       = true
    before_walltime = true
  }
}

job "itself" {
  command = ["/bin/echo"]
  checkpoint {
    method    = "self"
    every     = "auto"
    signal    = "USR2"
    exit_code = 85
    files     = ["state/*", "log"]
  }
}

job "never" {
  command = ["/bin/echo"]
  checkpoint {
    enabled = false
  }
}
