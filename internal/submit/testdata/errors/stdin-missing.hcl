job "train" {
  command = ["echo", "hi"]
  stdin = "nowhere.txt"
}
