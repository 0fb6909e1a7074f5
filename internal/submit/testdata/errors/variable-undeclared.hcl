# --var stepz=4
variable "steps" {
  default = 4
}
job "train" {
  command = ["echo", "hi"]
}
