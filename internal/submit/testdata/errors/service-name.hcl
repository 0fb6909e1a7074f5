job "web_1" {
  command = ["true"]
  service {}
}
job "__" {
  command = ["true"]
  service {}
}
