job "train" {
  command = ["echo", "hi"]
  mail_to = ["ann bob"]
}
