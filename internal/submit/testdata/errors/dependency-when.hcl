job "train" {
  command = ["echo", "hi"]
  depends_on = [{ id = "12", when = "afterbad" }]
}
