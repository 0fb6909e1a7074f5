# The smallest job: roost submit hello.hcl
job "hello" {
  command = ["echo", "hello, world"]
}
