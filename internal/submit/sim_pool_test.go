package submit

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const validSimPool = `
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

// TestSimPool reads a simulated pool, and checks the messages for invalid ones.
func TestSimPool(t *testing.T) {
	m, diags := ParseSimPool([]byte(validSimPool), ParseOptions{Filename: "mix.hcl", Dir: "/"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	k, l := m.Machines[0], m.Loads[0]
	if m.Managers != 3 || m.Schedds != 1 || k.Count != 3 || k.Resources.CPU != 2500 || k.Resources.Memory != 8<<30 {
		t.Errorf("the pool is %+v", m)
	}
	if l.Jobs != 10 || l.Interval != time.Minute || l.End != time.Hour || l.RunTime != 90*time.Second ||
		l.RunTimeSigma != 1.5 || l.Users != 2 || l.Job.Label != "a" {
		t.Errorf("the load is %+v", l)
	}
	if _, diags := ParseFile([]byte(validSimPool), ParseOptions{Filename: "mix.hcl", Dir: "/"}); !diags.HasErrors() {
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
		src := strings.Replace(validSimPool, test.old, test.new, 1)
		_, diags := ParseSimPool([]byte(src), ParseOptions{Filename: "mix.hcl", Dir: "/"})
		text := Format(diags, []byte(src), 100, false)
		if !diags.HasErrors() || !strings.Contains(text, test.says) || !strings.Contains(text, "mix.hcl:"+test.line) &&
			!strings.Contains(text, "line "+test.line) {
			t.Errorf("with %q it says:\n%s\nwant %q on line %s", test.new, text, test.says, test.line)
		}
	}
}

const ownedSimPool = `
machines "desk" {
  count = 3
  policy = "desktop"
  start = "TARGET.Walltime <= 3600"
  resume_after = "1m"
  leave_after = "5m"
  owner {
    away = "2h"
    present = "20m"
    hours = ["Mon-Fri 08:00-18:00", "22:00-23:00"]
  }
}
machines "node" { cpus = 4 }
job "a" { command = ["/bin/true"] }
load "a" { jobs = 10 }
`

// TestSimPoolOwners checks that owner policies are those of a node file, and the messages
// for invalid ones.
func TestSimPoolOwners(t *testing.T) {
	m, diags := ParseSimPool([]byte(ownedSimPool), ParseOptions{Filename: "mix.hcl", Dir: "/"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	desk, node := m.Machines[0], m.Machines[1]
	if p := desk.Owner; p == nil || p.Name != "desktop" || len(p.Start) != 2 || p.ResumeDelay != time.Minute ||
		p.VacateDelay != 5*time.Minute || p.StartDelay != 10*time.Minute {
		t.Errorf("the policy is %+v", p)
	}
	if v := desk.Schedule; v.MeanAway != 2*time.Hour || v.MeanPresent != 20*time.Minute || len(v.Hours) != 2 ||
		v.Hours[0].Text != "Mon-Fri 08:00-18:00" {
		t.Errorf("he comes as %+v", v)
	}
	if node.Owner != nil || node.Schedule.MeanAway != 0 {
		t.Errorf("nobody's is %+v", node)
	}
	for _, test := range []struct{ old, new, at, says string }{
		{`"desktop"`, `"desk"`, "4:12", "there is no such policy"},
		{`"desktop"`, `7`, "4:12", "policy is not a text"},
		{`policy = "desktop"`, `polizy = "desktop"`, "4:3", `Did you mean "policy"`},
		{`policy = "desktop"`, ``, "8:3", "do not ask whether their owner is there"},
		{`TARGET.Walltime <=`, `TARGET.Walltime <= <=`, "5:11", "start is no expression"},
		{`TARGET.Walltime <= 3600`, `MY.KeyboardIdel > 60`, "5:11", "did you mean KeyboardIdle?"},
		{`resume_after = "1m"`, `resume_after = "1s"`, "6:18", "resume_after is too short"},
		{`leave_after = "5m"`, `leave_after = 5`, "7:17", "leave_after is not a time"},
		{`away = "2h"`, `away = "0s"`, "9:12", "away is too short"},
		{`away = "2h"`, ``, "10:5", "there is present, and no away"},
		{`present = "20m"`, ``, "9:5", "there is away, and no present"},
		{`"Mon-Fri 08:00-18:00"`, `"Mon-Fry 08:00-18:00"`, "11:13", `"Mon-Fry" is neither a day`},
		{`["Mon-Fri 08:00-18:00", "22:00-23:00"]`, `"22:00-23:00"`, "11:13", "hours is no list of times"},
		{`["Mon-Fri 08:00-18:00", "22:00-23:00"]`, `[]`, "11:13", "hours is no list of times"},
		{`["Mon-Fri 08:00-18:00", "22:00-23:00"]`, `[8]`, "11:13", "In it there is the number 8"},
		{"  owner {", "  owner { }\n  owner {", "8:3", "it is not said when the owner comes"},
		{"  owner {", "  owner { hours = [\"08:00-09:00\"] }\n  owner {", "9:3", "two blocks called owner"},
		{`away = "2h"`, `gone = "2h"`, "9:5", `there is no setting "gone"`},
		{`machines "node" { cpus = 4 }`, `owner { away = "1h" }`, "14:1", `"owner"`},
	} {
		src := strings.Replace(ownedSimPool, test.old, test.new, 1)
		_, diags := ParseSimPool([]byte(src), ParseOptions{Filename: "mix.hcl", Dir: "/"})
		text := Format(diags, []byte(src), 200, false)
		at := ""
		if diags.HasErrors() {
			at = fmt.Sprintf("%d:%d", diags[0].Subject.Start.Line, diags[0].Subject.Start.Column)
		}
		if at != test.at || !strings.Contains(text, test.says) {
			t.Errorf("with %q it says at %s:\n%s\nwant %q at %s", test.new, at, text, test.says, test.at)
		}
	}
}
