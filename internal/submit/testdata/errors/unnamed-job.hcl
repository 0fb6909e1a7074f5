job {
  command = ["echo"]
}
