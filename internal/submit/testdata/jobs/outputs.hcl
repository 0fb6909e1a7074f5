job "renames" {
  command = ["echo", "hi"]
  count   = 2
  outputs = { "out" = "out.${task.index}", "*.log" = "logs/", "dir" = "${task.job}.dir.${task.index}" }
}
