job "train" {
  command = ["echo", "hi"]
  mail_on = ["abort", "tasks"]
}
