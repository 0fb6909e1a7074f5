package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// cellNow is the time of the checkpoints, in unix seconds.
const cellNow = 1_790_000_000

// testCheckpoint returns a checkpoint of three machines with four cores and two GPUs
// each.
func testCheckpoint(t *testing.T) *cellstate.CellCheckpoint {
	t.Helper()
	c := &cellstate.CellCheckpoint{Ledger: ledger.New(), ClaimHolders: map[fairshare.Submitter]roost.Resources{}}
	c.Now = time.Unix(cellNow, 0)
	c.KnownSchedds = func(string) bool { return true }
	c.Ledger.Apply(&ledger.LogEntry{At: cellNow * 1e9, Lead: "head"})
	for k := range 3 {
		topology := gpu.MachineTopology{CPU: 4000, Memory: 8 * roost.GiB, Cores: make([]gpu.CPUCore, 4)}
		for i := range 2 {
			topology.Devices = append(topology.Devices, gpu.Device{UUID: fmt.Sprintf("GPU-%d-%d", k, i), Model: "A100",
				Memory: 8 * roost.GiB, NUMANode: -1, Health: gpu.HealthyDevice()})
		}
		units, err := gpu.CutUnits(topology, gpu.LayoutConfig{Shape: gpu.SharedLayout})
		if err != nil {
			t.Fatal(err)
		}
		ad := classad.New()
		ad.SetReal(roost.AttrTotalDisk, float64(roost.GiB/roost.KiB))
		ad.SetReal(roost.AttrDisk, float64(roost.GiB/roost.KiB))
		ad.SetString("Site", []string{"north", "south", "south"}[k])
		gpu.NewFree(units, roost.GiB).Describe(ad)
		c.Machines = append(c.Machines, match.NewMachine(fmt.Sprintf("n%d", k), 1, 1, ad))
	}
	return c
}

// addRunningTask adds a running task to a checkpoint.
func addRunningTask(t *testing.T, c *cellstate.CellCheckpoint, machine int, claim match.MachineClaim) {
	t.Helper()
	m := c.Machines[machine]
	var ok bool
	if claim.Placement, ok = m.PlaceNext(nil, gpu.DeviceRequest{Resources: claim.Resources}, false); !ok {
		t.Fatalf("no room for %+v", claim)
	}
	var err error
	if c.Machines[machine], err = m.AfterClaimsEnd(nil, claim); err != nil {
		t.Fatal(err)
	}
	c.ClaimHolders[claim.Submitter] = c.ClaimHolders[claim.Submitter].Add(claim.Resources)
}

// newRequest adds a request to a checkpoint.
func newRequest(t *testing.T, c *cellstate.CellCheckpoint, id uint64, who, text string, own int,
	r roost.Resources) *cellstate.PendingRequest {
	t.Helper()
	a := &cellstate.PendingRequest{AdText: text, OwnWanted: own}
	a.Key, a.Submitter, a.Band, a.Oldest = match.RequestKey{Schedd: "s", ID: id}, fairshare.Submitter{Owner: who},
		roost.BatchBand, (cellNow-600)*1e9
	var err error
	if a.Class, err = match.NewClass(text, a.Submitter, a.Band, r); err != nil {
		t.Fatal(err)
	}
	c.Requests = append(c.Requests, a)
	return a
}

// TestCell checks that a cell resumes from its checkpoint. Running tasks end in place
// when expected, even on a drained machine, where nothing new starts. Waiting tasks start
// in order where they may, and notes list what is not simulated.
func TestCell(t *testing.T) {
	c := testCheckpoint(t)
	each := roost.Resources{CPU: 2000, Memory: roost.GiB}
	bob := func(id uint64, job string, since, ends, expected int64) match.MachineClaim {
		return match.MachineClaim{ID: id, Submitter: fairshare.Submitter{Owner: "bob"}, Band: roost.BatchBand,
			Resources: each, TaskStarted: since, WalltimeEnd: ends, PredictedEnd: expected, Job: job}
	}
	addRunningTask(t, c, 0, bob(1, "7[0].s", cellNow-100, cellNow+1000, cellNow+200))
	addRunningTask(t, c, 0, bob(2, "7[1].s", cellNow-100, cellNow+1000, 0))
	addRunningTask(t, c, 1, bob(3, "8.s", cellNow-5000, 0, 0))
	gpuClaim := bob(4, "9.s", cellNow-50, cellNow+50, 0)
	gpuClaim.Resources.GPUs = 1
	addRunningTask(t, c, 1, gpuClaim)
	south := newRequest(t, c, 1, "ann", `[Requirements = TARGET.Site == "south"; GangSize = 2]`, 4, each)
	south.Walltime, south.Gang = 60*time.Second, 2
	newRequest(t, c, 2, "bob", "[]", 0, each).Walltime = 1100 * time.Second
	newRequest(t, c, 3, "eve", "[]", 2, roost.Resources{CPU: 1000, Memory: roost.GiB, GPUs: 2}).PredictedRuntime = 30 *
		time.Second
	c.Jobs = []cellstate.JobRow{
		{ID: "7.s", Owner: "bob", Request: 2, Running: 2, Submitted: (cellNow - 200) * 1e9},
		{ID: "8.s", Owner: "bob", Request: 4, Running: 1, Submitted: (cellNow - 6000) * 1e9},
		{ID: "9.s", Owner: "bob", Request: 5, Running: 1},
		{ID: "12.s", Owner: "ann", Request: 1, Waiting: 4, Submitted: (cellNow - 300) * 1e9},
		{ID: "13.s", Owner: "eve", Request: 3, Waiting: 3, Submitted: (cellNow - 100) * 1e9},
	}
	drained := c.Ledger.Apply(&ledger.LogEntry{At: cellNow * 1e9, Epoch: epochOf(c.Ledger),
		Commands: []ledger.AdminCommand{
			{Kind: ledger.KindDrain, Verb: ledger.VerbSet, Trusted: true, Object: []byte(`{"node":"n0"}`)},
		}})
	if len(c.Ledger.Drains()) != 1 {
		t.Fatal(drained)
	}
	config, notes, err := FromCell(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{"1 task that runs says no walltime", "1 task is left out: it has only just come",
		"jobs that are held"} {
		if !strings.Contains(all, want) {
			t.Errorf("the notes do not say %q:\n%s", want, all)
		}
	}
	config.OnlyOnChange = true
	var digests [2]uint64
	for k := range digests {
		p, err := pool.New(config)
		if err != nil {
			t.Fatal(err)
		}
		if s := p.Sample(); s.Running != 4 || s.Waiting != 6 || s.Endless != 1 {
			t.Fatalf("at the beginning: %+v", s)
		}
		p.RunUntil(time.Hour)
		digests[k] = p.Digest()
		if s := p.Sample(); s.Running != 1 || s.Ended != 9 || !p.IsStuck(30*time.Minute) || len(p.Refused()) > 0 {
			t.Fatalf("after an hour: %+v; refused %v", s, p.Refused())
		}
		outcomes, by := p.Outcomes(), map[string][2]time.Duration{}
		for i := range outcomes {
			name, _ := config.Jobs[i].Spec.Ad.Str(roost.AttrJobName)
			by[name] = [2]time.Duration{outcomes[i].FirstStarted, outcomes[i].LastEnded}
		}
		for name, want := range map[string][2]time.Duration{
			"7.s": {-100 * time.Second, 1000 * time.Second}, "9.s": {-50 * time.Second, 50 * time.Second},
			"8.s": {-5000 * time.Second, -1}, "12.s": {0, 140 * time.Second},
			// it lacks GPUs first, and its second pair then lacks cores in the south
			"13.s": {50 * time.Second, 90 * time.Second},
		} {
			got := by[name]
			near := func(a, b time.Duration) bool { return a-b > -2*time.Second && a-b < 10*time.Second }
			if !near(got[0], want[0]) || !near(got[1], want[1]) {
				t.Errorf("%s runs from %v to %v, want %v to %v", name, got[0], got[1], want[0], want[1])
			}
		}
	}
	if digests[0] != digests[1] {
		t.Error("the second time it was another run")
	}
}

// epochOf returns the present epoch.
func epochOf(l *ledger.Ledger) uint64 {
	epoch, _ := l.Epoch()
	return epoch
}

// TestCellTimes checks that invalid instants are refused with the name of their object.
// Endless tasks must run forever, with a note.
func TestCellTimes(t *testing.T) {
	each := roost.Resources{CPU: 1000, Memory: roost.GiB}
	for name, test := range map[string]struct {
		change func(*cellstate.CellCheckpoint)
		says   string
	}{
		"a clock that was never set": {func(c *cellstate.CellCheckpoint) {
			c.Now = time.Unix(0, 0)
		}, "it was taken at 1970-01-01T00:00:00Z"},
		"a clock of far away": {func(c *cellstate.CellCheckpoint) {
			c.Now = time.Unix(1<<40, 0)
		}, "it was taken at "},
		"a task of tomorrow": {func(c *cellstate.CellCheckpoint) {
			c.Machines[0].Claims[0].TaskStarted = cellNow + 2*86400
		}, "machine n0: claim 1: invalid request: its task began at 1790172800"},
		"a task without an end": {func(c *cellstate.CellCheckpoint) {
			c.Machines[0].Claims[0].WalltimeEnd = 1 << 62
		}, "machine n0: claim 1: invalid request: its task ends at 4611686018427387904"},
		"a guess without an end": {func(c *cellstate.CellCheckpoint) {
			c.Machines[0].Claims[0].PredictedEnd = -1 << 62
		}, "its task is expected to end at -4611686018427387904"},
		"a request of long ago": {func(c *cellstate.CellCheckpoint) {
			c.Requests[0].Oldest = -1 << 63
		}, "request 1 of schedd s: invalid request: it was first wanted at"},
		"a job of the future": {func(c *cellstate.CellCheckpoint) {
			c.Jobs[0].Submitted = 1<<63 - 1
		}, "job 12.s: invalid request: it was submitted at"},
	} {
		c := testCheckpoint(t)
		addRunningTask(t, c, 0, match.MachineClaim{ID: 1, Submitter: fairshare.Submitter{Owner: "bob"},
			Band: roost.BatchBand, Resources: each, TaskStarted: cellNow - 10, WalltimeEnd: cellNow + 10, Job: "7.s"})
		newRequest(t, c, 1, "ann", "[]", 1, each).Walltime = time.Minute
		c.Jobs = []cellstate.JobRow{{ID: "12.s", Owner: "ann", Request: 1, Waiting: 1,
			Submitted: (cellNow - 300) * 1e9}}
		if _, _, err := FromCell(c, 1); err != nil {
			t.Fatal(err)
		}
		test.change(c)
		if _, _, err := FromCell(c, 1); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
	c := testCheckpoint(t)
	addRunningTask(t, c, 0, match.MachineClaim{ID: 1, Submitter: fairshare.Submitter{Owner: "bob"},
		Band: roost.BatchBand, Resources: each, TaskStarted: cellNow - 10, WalltimeEnd: cellNow + 40*365*86400,
		Job: "7.s"})
	newRequest(t, c, 1, "ann", "[]", 2, each).Walltime = 90 * 365 * 24 * time.Hour
	config, notes, err := FromCell(c, 1)
	if err != nil || !strings.Contains(strings.Join(notes, "\n"), "3 tasks are said to run for more than ten years") {
		t.Fatalf("%v, %q", err, notes)
	}
	p := playFor(t, config, time.Hour)
	if s := p.Sample(); s.Running != 3 || s.Endless != 3 || !p.IsStuck(30*time.Minute) {
		t.Errorf("%+v", s)
	}
}

// TestCellSkips checks that what cannot be simulated is noted, and not simulated as
// something else.
func TestCellSkips(t *testing.T) {
	c := testCheckpoint(t)
	each := roost.Resources{CPU: 1000, Memory: roost.GiB}
	c.Machines[0].Ad.SetString(roost.AttrState, "Owner")
	c.Machines[1] = c.Machines[1].ReplaceClaims(nil, nil, fmt.Errorf("nobody can read them"))
	reclaimed := match.MachineClaim{ID: 1, Submitter: fairshare.Submitter{Owner: "bob"}, Band: roost.FreeBand,
		Resources: each, TaskStarted: cellNow - 10, WalltimeEnd: cellNow + 10, Job: "7.s"}
	addRunningTask(t, c, 2, reclaimed)
	c.Machines[2].Claims[0].Placement.Reclaimed = true
	newRequest(t, c, 1, "ann", "[]", 3, each).GangRequest = 1
	config, notes, err := FromCell(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{
		"1 machine is left out: nobody knows whose claims", "1 machine takes nothing new, as its owner",
		"1 task runs in what others leave", "3 tasks that wait are left out: of those",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the notes do not say %q:\n%s", want, all)
		}
	}
	p := runToEnd(t, config)
	if s := p.Sample(); s.Ended != 1 || len(config.Machines) != 2 || p.Outcomes()[0].LastEnded < 10*time.Second {
		t.Errorf("%+v", s)
	}
	c.Machines = nil
	if _, _, err := FromCell(c, 1); err == nil {
		t.Error("a cell without machines is played")
	}
}
