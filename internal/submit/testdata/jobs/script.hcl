job "hello" {
  script = <<-END
    #!/usr/bin/env python3
    print("$x")
  END
}
job "each" {
  count = 2
  script = <<-END
    echo "$HOME $(TaskIndex) ${task.index}"
  END
  arguments = ["a"]
}
job "options" {
  script = "#!/bin/bash -e\nfalse\n"
}
job "shell" {
  script = "echo"
  shell = "bash"
}
