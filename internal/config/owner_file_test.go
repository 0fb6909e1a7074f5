package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// loadOwner reads an owner's file with a text.
func loadOwner(t *testing.T, text string) (OwnerRules, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("owner.hcl", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadOwner("owner.hcl")
}

func TestOwnerFile(t *testing.T) {
	got, err := loadOwner(t, `
		paused = true
		owners = ["ann", "bob"]
		start_after = "20m"
		resume_after = "6m"
		leave_after = "1m"
		hours = ["Mon-Fri 08:00-18:00"]
		cpus = 2.5
		memory = "8GiB"
		on_battery = true
		exclusive = ["steam"]
		foreign_cpu = 1
		start = "TARGET.Owner == \"ann\""
		suspend = "ClockMin < 60"
		continue = "ClockMin > 60"
		preempt = "ClockMin == 30"
		kill = "ActivityTimer > 5"`)
	if err != nil {
		t.Fatal(err)
	}
	hours, err := policy.ParseHours("Mon-Fri 08:00-18:00")
	if err != nil {
		t.Fatal(err)
	}
	want := OwnerRules{
		Paused: true, Owners: []string{"ann", "bob"}, StartAfter: 20 * time.Minute, ResumeAfter: 6 * time.Minute,
		LeaveAfter: time.Minute, Hours: []policy.WeeklyHours{hours},
		CPU: 2500, Memory: 8 * roost.GiB, OnBattery: true, Exclusive: []string{"steam"}, ForeignCPU: 1000,
		Start: `TARGET.Owner == "ann"`, Suspend: "ClockMin < 60", Continue: "ClockMin > 60", Preempt: "ClockMin == 30",
		Kill: "ActivityTimer > 5",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	r := got.PolicyRules()
	if r.Start == nil || r.Suspend == nil || r.Continue == nil || r.Preempt == nil || r.Kill == nil ||
		r.Kill.String() != want.Kill {
		t.Errorf("an expression is lost: %+v", r)
	}
	if !r.Paused || !r.RunsOnBattery || r.StartDelay != want.StartAfter || r.CPU != want.CPU ||
		r.Memory != want.Memory || len(r.NoRunHours) != 1 {
		t.Errorf("something is lost: %+v", r)
	}
}

// TestNoOwnerFile checks that a missing file, which is usual, sets nothing.
func TestNoOwnerFile(t *testing.T) {
	got, err := LoadOwner(filepath.Join(t.TempDir(), "owner.hcl"))
	if want := (OwnerRules{ForeignCPU: DefaultForeignCPU}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := LoadOwner(t.TempDir()); !errors.Is(err, roost.NoInput) {
		t.Errorf("a directory: got %v, want no input", err)
	}
}

func TestOwnerMistakes(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`start_afer = "10m"`, "owner.hcl:1:1: owner's file: unknown setting \"start_afer\"\n    1 | start_afer " +
			"= \"10m\"\n      | ^^^^^^^^^^\n      did you mean \"start_after\"?"},
		{`start_after = "0s"`, "start_after: it is 0"},
		{`hours = ["Mon-Fri"]`, `"Mon-Fri" is no time from one to another`},
		{`hours = ["Mon-Fri 08:00-18:00", "Fry 08:00-18:00"]`, "owner.hcl:1:33: hours \"Fry 08:00-18:00\""},
		{`hours = ["25:00-26:00"]`, `"25:00-26:00" is no time`},
		{`hours = ["08:00-08:00"]`, "it ends when it begins"},
		{`start = "MY.Keyboardidel > 3"`, "did you mean KeyboardIdle?"},
		{`start = "false"`, "start: it is never true"},
		{`suspend = "KeyboardIdle <"`, "suspend: "},
		{`cpus = -1`, "is not a number of cores"},
		{`owners = ["ann", "b/b"]`, "owner.hcl:1:18: owners: \"b/b\" is not a name"},
		{`paused = `, "owner.hcl:1:"},
		{strings.Repeat("[", 1000), "nested more than 64 deep"},
		{`exclusive = [` + strings.Repeat(`"x",`, 200) + `]`, "more than 100"},
	} {
		_, err := loadOwner(t, tt.text)
		if !errors.Is(err, roost.BadConfig) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40s: got %v, want %q in it", tt.text, err, tt.want)
		}
	}
}

// TestOwnerManual compares roost-owner(5) with LoadOwner, both ways.
func TestOwnerManual(t *testing.T) {
	text, err := os.ReadFile("../../man/roost-owner.5")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, line := range regexp.MustCompile(`(?m)^\.TP\n\.BR? (.*)$`).FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, strings.Fields(strings.ReplaceAll(line[1], `", "`, " "))...)
	}
	_, err = loadOwner(t, "xxxxxxxxxxxxxxxxxxxxxxxxx = 1")
	_, list, ok := strings.Cut(err.Error(), "known here: ")
	if !ok {
		t.Fatal(err)
	}
	known := strings.Split(list, ", ")
	slices.Sort(documented)
	slices.Sort(known)
	if !slices.Equal(documented, known) {
		t.Errorf("the manual tells of\n%v\nand the owner's file knows\n%v", documented, known)
	}
}

func TestOwnerSample(t *testing.T) {
	if r, err := LoadOwner("../../etc/owner.hcl"); err != nil || len(r.Hours) != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestPolicies checks that the policy of a startd is that of its settings, and whether it
// needs a guard.
func TestPolicies(t *testing.T) {
	for _, tt := range []struct {
		settings string
		guarded  bool
		warnings int
	}{
		{"", false, 0},
		{`policy = "always"`, false, 0},
		{`policy = "server"`, false, 0},
		{`policy = "desktop"`, true, 0},
		{`policy = "desktop-hours"`, true, 0},
		{`start = "TARGET.Walltime < 3600"`, false, 0},
		{`start = "KeyboardIdle > 900"`, true, 0},
		{`suspend = "MY.OnBattery"`, true, 0},
		{`start = "TARGET.IsNice"`, false, 1},
		{`rank = "TARGET.JobPrio"`, false, 1},
		{`rank = "TARGET.AccountingGroup == \"optics\" ? 10 : 0"`, false, 0},
		{`suspend = "TARGET.Queue == \"night\""`, false, 1},
		{`start = "IsNice && TARGET.WallTime > 0"`, false, 1},
		{"start = \"IsNice\"\n attributes = { IsNice = true }", false, 0},
	} {
		n, err := loadText(t, "collector {}\nstartd {\n"+tt.settings+"\n}")
		if err != nil {
			t.Errorf("%s: %v", tt.settings, err)
			continue
		}
		if got := n.NeedsGuard(); got != tt.guarded || len(n.Warnings) != tt.warnings {
			t.Errorf("%s: guarded %v, warnings %q", tt.settings, got, n.Warnings)
		}
	}
	n, err := loadText(t,
		"collector {}\nstartd {\n policy = \"desktop\"\n start = \"TARGET.Walltime < 60\"\n vacate_time = \"3m\"\n}")
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Startds[0].OwnerPolicy()
	if err != nil || p.Name != "desktop" || len(p.Start) != 2 || p.VacateTime != 3*time.Minute ||
		p.VacateDelay != 10*time.Minute {
		t.Errorf("got %+v, %v", p, err)
	}
}
