# The least that can be run: roost submit hello.hcl
job "hello" {
  command = ["echo", "hello, world"]
}
