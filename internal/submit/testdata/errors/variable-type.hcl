# --var steps=many
variable "steps" {
  type = number
}
job "train" {
  command = ["echo", "hi"]
  count = var.steps
}
