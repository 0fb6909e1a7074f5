job "a" {
  command = ["echo", format("%999999999d", 1), indent(1e9, "x"), replace(join("", range(100000)), "", join("", range(100000)))]
}
