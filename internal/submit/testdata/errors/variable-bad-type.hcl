variable "steps" {
  type = int
  default = 1
}
job "train" {
  command = ["echo", "hi"]
}
