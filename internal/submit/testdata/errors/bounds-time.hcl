job "train" {
  command  = ["echo", "hi"]
  cpu_time = 60
}
