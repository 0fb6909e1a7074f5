job "train" {
  image          = "docker://ghcr.io/lab/python:3.12"
  image_workdir  = "/work/"
  image_writable = true
  mounts         = ["/data", "/home/ann/sims/data:/input:ro"]
  command        = ["python3", "-c", "print(${task.index})"]
  count          = 2
}

job "layout" {
  image      = "oci:images/tool:v2"
  executable = "/opt/tool/bin/tool"
}

job "entry" {
  image            = "tool@live"
  image_entrypoint = true
}
