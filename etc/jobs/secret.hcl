# A service that needs a password and a key. Neither is in this file: set them first with
#
#     roost secret set db-password
#     roost secret set tls.key <server.key
#
# The tasks find them in /run/secrets, where only their user can read them.

job "reports" {
  script = <<-EOT
    trap 'echo "the password has changed: $(wc -c </run/secrets/db-password) bytes"' HUP
    echo "the key has $(wc -l </run/secrets/tls.key) lines"
    while :; do sleep 1 & wait; done
  EOT
  count   = 2
  service {}
  update {
    max_down = 1
  }
  secret "db-password" {
    on_change = "signal" # a new version is in the file; the program is told
    signal    = "HUP"
  }
  secret "tls.key" {
    on_change = "restart" # one task after the other, within max_down
  }
}
