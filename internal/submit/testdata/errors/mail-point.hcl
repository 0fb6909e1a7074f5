job "train" {
  command = ["echo", "hi"]
  mail_on = ["ends"]
}
