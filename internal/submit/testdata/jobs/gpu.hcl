job "shares" {
  command    = ["echo", "hi"]
  gpu_memory = "10GiB"
}
job "several" {
  command    = ["echo", "hi"]
  count      = 3
  cpus       = 0.25
  gpus       = [0, 1, 2][task.index]
  gpu_memory = "${4 * (task.index + 1)}GiB"
  app_class  = "stream"
}
job "some" {
  command = ["echo", "hi"]
  count   = 4
  override {
    tasks      = "1-2"
    gpu_memory = "512MiB"
  }
}
job "batch" {
  command   = ["echo", "hi"]
  gpus      = 2
  app_class = "batch"
}
