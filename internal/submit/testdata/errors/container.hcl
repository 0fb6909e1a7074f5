job "a" {
  image         = "ubuntu"
  image_workdir = "work"
  mounts        = ["data", "/x:/y", "/z:/y", "/a:/proc/b"]
  command       = ["echo"]
}

job "b" {
  image_writable = true
  mounts         = ["/data"]
  command        = ["echo"]
}

job "c" {
  image = "oci:"
}

job "d" {
  image          = "docker://python"
  image_writable = "yes"
  mounts         = "/data"
  command        = ["python3"]
}
