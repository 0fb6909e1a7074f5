job "a" {
  command    = ["echo", "hi"]
  depends_on = ["on:0"]
}
