job "train" {
  command = ["echo", "hi"]
  count   = 2
  mail_on = ["tasks"]
}
