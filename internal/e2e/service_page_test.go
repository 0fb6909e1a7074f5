package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// submitService submits a service that is ready and has an update that is paused, and a
// job with a schedule.
func (p *Pool) submitService(t *testing.T) (service, schedule string) {
	t.Helper()
	text := `job "hub" {
  command = ["sleep", "${port.http}"]
  count   = 2
  cpus    = 0.01
  memory  = "16MiB"
  service {}
  port "http" {}
  check "up" {
    exec  = ["true"]
    every = "1s"
  }
  update { # it goes on for as long as the test
    settle       = "1h"
    ready_within = "2h"
    progress     = "3h"
  }
}
job "yearly" {
  command = ["true"]
  schedule {
    cron = "@yearly"
  }
}
`
	submit := func(text string, args ...string) string { return p.withFile(t, text, args...) }
	ids := strings.Fields(submit(text, "submit"))
	first, _, _ := strings.Cut(strings.Replace(text, `"sleep"`, `"sleep", "1000"`, 1), "job \"yearly\"")
	for _, args := range [][]string{{"wait", "--ready", "--timeout", "2m", ids[0]}, {"update"},
		{"update", "--pause", ids[0]}} {
		if len(args) == 1 {
			submit(first, args...)
			continue
		}
		if stdout, stderr, code := p.Command(t.Context(), args...); code != 0 {
			t.Fatalf("%v: %s%s", args, stdout, stderr)
		}
	}
	return ids[0], ids[1]
}

// withFile runs a command with a job file as its last operand.
func (p *Pool) withFile(t *testing.T, text string, args ...string) string {
	t.Helper()
	file := filepath.Join(openDir(t), "hub.hcl")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := p.Command(t.Context(), append(args, file)...)
	if code != 0 {
		t.Fatalf("%v: %s%s", args, stdout, stderr)
	}
	return stdout
}

// submitAllocs submits an alloc set and a service inside, which is ready.
func (p *Pool) submitAllocs(t *testing.T) (set, inside string) {
	t.Helper()
	ids := strings.Fields(p.withFile(t, `alloc "box" {
  count  = 2
  cpus   = 0.2
  memory = "64MiB"
  users  = ["bob"]
}
job "inside" {
  in      = alloc.box
  count   = 2
  cpus    = 0.1
  memory  = "16MiB"
  command = ["sleep", "1000"]
  service {}
}
`, "submit"))
	if stdout, stderr, code := p.Command(t.Context(), "wait", "--ready", "--timeout", "2m", ids[1]); code != 0 {
		t.Fatalf("wait: %s%s", stdout, stderr)
	}
	return ids[0], ids[1]
}
