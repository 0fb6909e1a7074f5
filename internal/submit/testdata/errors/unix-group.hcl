job "a" {
  command    = ["echo", "hi"]
  unix_group = "a b"
}
