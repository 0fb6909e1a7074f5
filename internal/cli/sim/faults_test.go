package sim

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSimFaults holds what is said of seeds that are clean, and what is refused. Of one
// that is not, TestMutantsAreReported speaks.
func TestSimFaults(t *testing.T) {
	for _, test := range []struct {
		line, out, stderr string // what has to be in them
		code              int
	}{
		{"roost sim faults --seeds 3 --from 7 --calm 1m", "3 seeds, 0 broke a promise; ", "", 0},
		{"roost sim faults --seeds 2 --kinds crashes,full-disks --machines 2 --jobs 3", "full disks", "", 0},
		{"roost sim faults --seeds 0", "", "--seeds 0: there must be one at least", 64},
		{"roost sim faults --managers 2", "", "--managers 2: an even number of replicas", 64},
		{"roost sim faults --machines 1001", "", "--machines 1001: it is from 1 to 1000", 64},
		{"roost sim faults --calm 10m --until 5m", "", "there would be no time to recover", 64},
		{"roost sim faults --calm soon", "", "--calm soon: ", 64},
		{"roost sim faults --kinds cuts,floods", "",
			"--kinds floods: there are no such faults\nthere are crashes, reboots, ", 64},
		{"roost sim faults --order fcfs", "", "--order has no meaning for roost sim faults", 64},
		{"roost sim faults now", "", "one argument too many: \"now\"", 64},
	} {
		a, stdout, stderr := newSimApp(t, t.TempDir())
		if code := a.Run(t.Context(), strings.Fields(test.line)); code != test.code ||
			!strings.Contains(stdout.String(), test.out) ||
			!strings.Contains(stderr.String(), test.stderr) || test.out == "" && stdout.Len() > 0 {
			t.Errorf("%s: exit status %d, stdout:\n%s\nstderr:\n%s", test.line, code, stdout, stderr)
		}
	}
	a, stdout, stderr := newSimApp(t, t.TempDir())
	var report struct {
		Seeds, Broken, Tasks, Events int
		Faults                       map[string]int
	}
	if code := a.Run(t.Context(), strings.Fields("roost sim faults --seeds 2 --json")); code != 0 ||
		json.Unmarshal(stdout.Bytes(), &report) != nil || report.Seeds != 2 || report.Tasks == 0 || report.Events == 0 {
		t.Errorf("exit status %d, stdout:\n%s\nstderr:\n%s", code, stdout, stderr)
	}
}
