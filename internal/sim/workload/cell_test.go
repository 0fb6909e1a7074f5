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
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
)

// cellNow is the moment of the checkpoints here.
const cellNow = 1_790_000_000

// checkpoint is of a cell of three machines of four cores and two GPUs.
func checkpoint(t *testing.T) *picture.Checkpoint {
	t.Helper()
	c := &picture.Checkpoint{Ledger: ledger.New(), Holds: map[share.Submitter]roost.Resources{}}
	c.Now = time.Unix(cellNow, 0)
	c.Known = func(string) bool { return true }
	c.Ledger.Apply(&ledger.Entry{At: cellNow * 1e9, Lead: "head"})
	for k := range 3 {
		topology := gpu.Topology{CPU: 4000, Memory: 8 * roost.GiB, Cores: make([]gpu.Core, 4)}
		for i := range 2 {
			topology.Devices = append(topology.Devices, gpu.Device{UUID: fmt.Sprintf("GPU-%d-%d", k, i), Model: "A100", Memory: 8 * roost.GiB, NUMA: -1, Health: gpu.Healthy()})
		}
		units, err := gpu.Cut(topology, gpu.Layout{Shape: gpu.Shared})
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

// runs has a task run in a cell.
func runs(t *testing.T, c *picture.Checkpoint, machine int, claim match.Claim) {
	t.Helper()
	m := c.Machines[machine]
	var ok bool
	if claim.Placement, ok = m.Seat(nil, gpu.Request{Resources: claim.Resources}, false); !ok {
		t.Fatalf("no room for %+v", claim)
	}
	var err error
	if c.Machines[machine], err = m.Turnover(nil, claim); err != nil {
		t.Fatal(err)
	}
	c.Holds[claim.Submitter] = c.Holds[claim.Submitter].Add(claim.Resources)
}

// ask is a request of a cell.
func ask(t *testing.T, c *picture.Checkpoint, id uint64, who, text string, own int, r roost.Resources) *picture.Ask {
	t.Helper()
	a := &picture.Ask{Text: text, Own: own}
	a.Key, a.Submitter, a.Band, a.Oldest = match.Key{Schedd: "s", ID: id}, share.Submitter{Owner: who}, roost.Batch, (cellNow-600)*1e9
	var err error
	if a.Class, err = match.NewClass(text, a.Submitter, a.Band, r); err != nil {
		t.Fatal(err)
	}
	c.Asks = append(c.Asks, a)
	return a
}

// TestCell: a cell goes on from its checkpoint. What runs ends when it is expected to, where it is, also on a machine that is drained, on which nothing new starts; what
// waits comes in its order, where it may; and what is not played is said.
func TestCell(t *testing.T) {
	c := checkpoint(t)
	each := roost.Resources{CPU: 2000, Memory: roost.GiB}
	bob := func(id uint64, job string, since, ends, expected int64) match.Claim {
		return match.Claim{ID: id, Submitter: share.Submitter{Owner: "bob"}, Band: roost.Batch, Resources: each, Since: since, Ends: ends, Expected: expected, Job: job}
	}
	runs(t, c, 0, bob(1, "7[0].s", cellNow-100, cellNow+1000, cellNow+200))
	runs(t, c, 0, bob(2, "7[1].s", cellNow-100, cellNow+1000, 0))
	runs(t, c, 1, bob(3, "8.s", cellNow-5000, 0, 0))
	card := bob(4, "9.s", cellNow-50, cellNow+50, 0)
	card.Resources.GPUs = 1
	runs(t, c, 1, card)
	south := ask(t, c, 1, "ann", `[Requirements = TARGET.Site == "south"; GangSize = 2]`, 4, each)
	south.Walltime, south.Gang = 60*time.Second, 2
	ask(t, c, 2, "bob", "[]", 0, each).Walltime = 1100 * time.Second
	ask(t, c, 3, "eve", "[]", 2, roost.Resources{CPU: 1000, Memory: roost.GiB, GPUs: 2}).Predicted = 30 * time.Second
	c.Jobs = []picture.Job{
		{ID: "7.s", Owner: "bob", Request: 2, Running: 2, Submitted: (cellNow - 200) * 1e9}, {ID: "8.s", Owner: "bob", Request: 4, Running: 1, Submitted: (cellNow - 6000) * 1e9},
		{ID: "9.s", Owner: "bob", Request: 5, Running: 1}, {ID: "12.s", Owner: "ann", Request: 1, Waiting: 4, Submitted: (cellNow - 300) * 1e9},
		{ID: "13.s", Owner: "eve", Request: 3, Waiting: 3, Submitted: (cellNow - 100) * 1e9},
	}
	drained := c.Ledger.Apply(&ledger.Entry{At: cellNow * 1e9, Epoch: epochOf(c.Ledger), Commands: []ledger.Command{
		{Kind: ledger.KindDrain, Verb: ledger.Set, Trusted: true, Object: []byte(`{"node":"n0"}`)},
	}})
	if len(c.Ledger.Drains()) != 1 {
		t.Fatal(drained)
	}
	config, notes, err := FromCell(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{"1 task that runs says no walltime", "1 task is left out: it has only just come", "jobs that are held"} {
		if !strings.Contains(all, want) {
			t.Errorf("the notes do not say %q:\n%s", want, all)
		}
	}
	config.Quiet = true
	var digests [2]uint64
	for k := range digests {
		p, err := pool.New(config)
		if err != nil {
			t.Fatal(err)
		}
		if s := p.State(); s.Running != 4 || s.Waiting != 6 || s.Endless != 1 {
			t.Fatalf("at the beginning: %+v", s)
		}
		p.Run(time.Hour)
		digests[k] = p.Digest()
		if s := p.State(); s.Running != 1 || s.Over != 9 || !p.Stuck(30*time.Minute) || len(p.Refused()) > 0 {
			t.Fatalf("after an hour: %+v; refused %v", s, p.Refused())
		}
		outcomes, by := p.Outcomes(), map[string][2]time.Duration{}
		for i := range outcomes {
			name, _ := config.Jobs[i].Spec.Ad.Str(roost.AttrJobName)
			by[name] = [2]time.Duration{outcomes[i].First, outcomes[i].Last}
		}
		for name, want := range map[string][2]time.Duration{
			"7.s": {-100 * time.Second, 1000 * time.Second}, "9.s": {-50 * time.Second, 50 * time.Second}, "8.s": {-5000 * time.Second, -1}, "12.s": {0, 140 * time.Second},
			"13.s": {50 * time.Second, 90 * time.Second}, // for want of GPUs, and the second pair after it for want of cores in the south
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

// epochOf is the one in force.
func epochOf(l *ledger.Ledger) uint64 {
	epoch, _ := l.Epoch()
	return epoch
}

// TestCellTimes: instants that make no sense are refused, with whose they are; what would run for ages runs for ever, and that is said.
func TestCellTimes(t *testing.T) {
	each := roost.Resources{CPU: 1000, Memory: roost.GiB}
	for name, test := range map[string]struct {
		change func(*picture.Checkpoint)
		says   string
	}{
		"a clock that was never set": {func(c *picture.Checkpoint) { c.Now = time.Unix(0, 0) }, "it was taken at 1970-01-01T00:00:00Z"},
		"a clock of far away":        {func(c *picture.Checkpoint) { c.Now = time.Unix(1<<40, 0) }, "it was taken at "},
		"a task of tomorrow":         {func(c *picture.Checkpoint) { c.Machines[0].Claims[0].Since = cellNow + 2*86400 }, "machine n0: claim 1: invalid request: its task began at 1790172800"},
		"a task without an end":      {func(c *picture.Checkpoint) { c.Machines[0].Claims[0].Ends = 1 << 62 }, "machine n0: claim 1: invalid request: its task ends at 4611686018427387904"},
		"a guess without an end":     {func(c *picture.Checkpoint) { c.Machines[0].Claims[0].Expected = -1 << 62 }, "its task is expected to end at -4611686018427387904"},
		"a request of long ago":      {func(c *picture.Checkpoint) { c.Asks[0].Oldest = -1 << 63 }, "request 1 of schedd s: invalid request: it was first wanted at"},
		"a job of the future":        {func(c *picture.Checkpoint) { c.Jobs[0].Submitted = 1<<63 - 1 }, "job 12.s: invalid request: it was submitted at"},
	} {
		c := checkpoint(t)
		runs(t, c, 0, match.Claim{ID: 1, Submitter: share.Submitter{Owner: "bob"}, Band: roost.Batch, Resources: each, Since: cellNow - 10, Ends: cellNow + 10, Job: "7.s"})
		ask(t, c, 1, "ann", "[]", 1, each).Walltime = time.Minute
		c.Jobs = []picture.Job{{ID: "12.s", Owner: "ann", Request: 1, Waiting: 1, Submitted: (cellNow - 300) * 1e9}}
		if _, _, err := FromCell(c, 1); err != nil {
			t.Fatal(err)
		}
		test.change(c)
		if _, _, err := FromCell(c, 1); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
	c := checkpoint(t)
	runs(t, c, 0, match.Claim{ID: 1, Submitter: share.Submitter{Owner: "bob"}, Band: roost.Batch, Resources: each, Since: cellNow - 10, Ends: cellNow + 40*365*86400, Job: "7.s"})
	ask(t, c, 1, "ann", "[]", 2, each).Walltime = 90 * 365 * 24 * time.Hour
	config, notes, err := FromCell(c, 1)
	if err != nil || !strings.Contains(strings.Join(notes, "\n"), "3 tasks are said to run for more than ten years") {
		t.Fatalf("%v, %q", err, notes)
	}
	p := played(t, config, time.Hour)
	if s := p.State(); s.Running != 3 || s.Endless != 3 || !p.Stuck(30*time.Minute) {
		t.Errorf("%+v", s)
	}
}

// TestCellLeaves: what a simulated pool has not is said, and none of it is played as something else.
func TestCellLeaves(t *testing.T) {
	c := checkpoint(t)
	each := roost.Resources{CPU: 1000, Memory: roost.GiB}
	c.Machines[0].Ad.SetString(roost.AttrState, "Owner")
	c.Machines[1] = c.Machines[1].Claimed(nil, nil, fmt.Errorf("nobody can read them"))
	lent := match.Claim{ID: 1, Submitter: share.Submitter{Owner: "bob"}, Band: roost.Free, Resources: each, Since: cellNow - 10, Ends: cellNow + 10, Job: "7.s"}
	runs(t, c, 2, lent)
	c.Machines[2].Claims[0].Placement.Reclaimed = true
	ask(t, c, 1, "ann", "[]", 3, each).Lead = 1
	config, notes, err := FromCell(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{
		"1 machine is left out: nobody knows whose claims", "1 machine takes nothing new, as its owner", "1 task runs in what others leave", "3 tasks that wait are left out: of those",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the notes do not say %q:\n%s", want, all)
		}
	}
	p := run(t, config)
	if s := p.State(); s.Over != 1 || len(config.Machines) != 2 || p.Outcomes()[0].Last < 10*time.Second {
		t.Errorf("%+v", s)
	}
	c.Machines = nil
	if _, _, err := FromCell(c, 1); err == nil {
		t.Error("a cell without machines is played")
	}
}
