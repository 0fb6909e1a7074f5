# A Python program in a container image. The machines need no Python: all of them run the
# one in the image. The job is pinned to what the tag means when it is submitted.

job "primes" {
  image  = "docker://docker.io/library/python:3.13-slim"
  count  = 10
  memory = "256MiB"

  script = <<-EOT
    #!/usr/bin/env python3
    import sys
    first = ${task.index} * 10_000
    print(sum(all(n % d for d in range(2, int(n ** 0.5) + 1)) for n in range(max(first, 2), first + 10_000)),
          "primes from", first, "with Python", sys.version.split()[0])
  EOT
}
