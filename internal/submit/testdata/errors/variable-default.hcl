variable "steps" {
  type = number
  default = "x"
}
job "train" {
  command = ["echo", "hi"]
}
