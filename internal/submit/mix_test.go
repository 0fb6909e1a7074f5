package submit

import (
	"strings"
	"testing"
	"time"
)

const goodMix = `
variable "nodes" { default = 3 }
pool { managers = 3 }
machines "node" {
  count = var.nodes
  cpus = 2.5
  memory = "8GiB"
}
job "a" { command = ["/bin/true"] }
load "a" {
  jobs = 10
  every = "1m"
  until = "1h"
  run = "90s"
  spread = 1.5
  users = 2
}
`

// TestMix reads a mix, and what is wrong with others is said at its place.
func TestMix(t *testing.T) {
	m, diags := ParseMix([]byte(goodMix), Options{Filename: "mix.hcl", Dir: "/"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	k, l := m.Machines[0], m.Loads[0]
	if m.Managers != 3 || m.Schedds != 1 || k.Count != 3 || k.Resources.CPU != 2500 || k.Resources.Memory != 8<<30 {
		t.Errorf("the pool is %+v", m)
	}
	if l.Jobs != 10 || l.Every != time.Minute || l.Until != time.Hour || l.Run != 90*time.Second || l.Spread != 1.5 || l.Users != 2 || l.Job.Label != "a" {
		t.Errorf("the load is %+v", l)
	}
	if _, diags := ParseFile([]byte(goodMix), Options{Filename: "mix.hcl", Dir: "/"}); !diags.HasErrors() {
		t.Error("a job file may have a pool")
	}
	for _, test := range []struct{ old, new, line, says string }{
		{"managers = 3", "managers = 7", "3", "managers is out of range"},
		{"managers = 3", "manager = 3", "3", `Did you mean "managers"`},
		{"count = var.nodes", "count = 0.5", "5", "count is out of range"},
		{"count = var.nodes", "count = var.node", "5", "node"},
		{`memory = "8GiB"`, `memory = 8`, "7", "memory has no unit"},
		{`run = "90s"`, `run = 90`, "14", "run is not a time"},
		{`run = "90s"`, `run = "-90s"`, "14", "run is not a time"},
		{"spread = 1.5", "spread = -1", "15", "spread is no spread"},
		{`until = "1h"`, "until = \"1h\"\n  from = \"2h\"", "13", "it ends before it begins"},
		{`load "a"`, `load "b"`, "10", `there is no job "b"`},
		{`load "a"`, `lord "a"`, "10", `Did you mean "load"`},
		{`machines "node"`, `job "node"`, "1", "the pool has no machines"},
		{`pool {`, "pool { }\npool {", "4", "two blocks called pool"},
		{"users = 2\n}", "users = 2\n}\nload \"a\" { }", "18", "two loads"},
	} {
		src := strings.Replace(goodMix, test.old, test.new, 1)
		_, diags := ParseMix([]byte(src), Options{Filename: "mix.hcl", Dir: "/"})
		text := Format(diags, []byte(src), 100, false)
		if !diags.HasErrors() || !strings.Contains(text, test.says) || !strings.Contains(text, "mix.hcl:"+test.line) && !strings.Contains(text, "line "+test.line) {
			t.Errorf("with %q it says:\n%s\nwant %q on line %s", test.new, text, test.says, test.line)
		}
	}
}
