job "bounded" {
  command                = ["echo", "hi"]
  count                  = 2
  cpu_time               = "1h"
  process_cpu_time       = "00:10:00"
  virtual_memory         = "8GiB"
  process_virtual_memory = "2GiB"
  process_memory         = "512MiB"
  file_size              = "100MB"
  nice                   = 10
  run_count              = 3
  stdout                 = "out.${task.index}"
  stderr                 = "err.${task.index}"
  empty_output           = true
  remove_output          = ["stderr", "stdout"]
  mail_on                = ["end", "abort", "tasks"]
  mail_to                = ["ann@example.org", "bob"]
}

job "told" {
  command = ["echo", "hi"]
  nice    = 0
  mail_to = ["ann@example.org"]
}

job "quiet" {
  command = ["echo", "hi"]
  mail_on = []
  mail_to = ["ann@example.org"]
}
