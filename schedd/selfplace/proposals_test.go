package selfplace

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/match"
)

// addMachine adds a machine to a copy, with the given total and free cores.
func addMachine(t *testing.T, c *CellCopy, name string, sequence uint64, cpus, free int) {
	t.Helper()
	ad, err := classad.Parse(fmt.Sprintf("[Name = %q; TotalCpus = %d; Cpus = %d; TotalMemory = 65536; Memory = 65536]",
		name, cpus, free))
	if err != nil {
		t.Fatal(err)
	}
	c.SetMachine(name, 1, sequence, ad)
}

func newRequestUpdate(id uint64, n int) RequestUpdate {
	return RequestUpdate{
		ID: id, Owner: "ann", Band: roost.BatchBand, Wanted: n, Ad: "[]",
		Resources: roost.Resources{CPU: 1000, Memory: roost.GiB},
	}
}

func timeAt(name string, units int) match.SelfPlacement {
	return match.SelfPlacement{Machine: name, Units: units}
}

func checkProposals(t *testing.T, what string, got []match.SelfPlacement, want ...match.SelfPlacement) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// TestCellCopy checks that proposed and granted resources are not proposed again. They
// are free again when the ads show it, or when the records expire.
func TestCellCopy(t *testing.T) {
	now, c := time.Unix(100, 0), New("s")
	addMachine(t, c, "a", 1, 4, 4)
	addMachine(t, c, "b", 1, 4, 4)
	checkProposals(t, "before all machines are known", c.Propose(now, []RequestUpdate{newRequestUpdate(1, 3)})[0])
	c.SetSynced()
	checkProposals(t, "first", c.Propose(now, []RequestUpdate{newRequestUpdate(1, 3)})[0], timeAt("a", 3))
	checkProposals(t, "what another request was promised is taken",
		c.Propose(now, []RequestUpdate{newRequestUpdate(2, 2)})[0], timeAt("a", 1), timeAt("b", 1))
	checkProposals(t, "what it was promised itself is proposed anew",
		c.Propose(now, []RequestUpdate{newRequestUpdate(1, 3)})[0], timeAt("a", 3))
	for id := range uint64(3) {
		c.Granted(now, LeaderGrant{ID: id, Request: 1, Machine: "a",
			Resources: roost.Resources{CPU: 1000, Memory: roost.GiB}})
	}
	now = now.Add(proposalLifetime)
	checkProposals(t, "what was granted is taken, what was only proposed is not",
		c.Propose(now, []RequestUpdate{newRequestUpdate(1, 8)})[0], timeAt("a", 1), timeAt("b", 4))
	c.Answered(now, 0, true, false, 2)
	c.Answered(now, 1, true, false, 2)
	c.Answered(now, 2, false, false, 0)
	addMachine(t, c, "a", 2, 4, 2)
	checkProposals(t, "the ad shows what was claimed, and who refused is not asked",
		c.Propose(now, []RequestUpdate{newRequestUpdate(1, 8)})[0], timeAt("b", 4))
	checkProposals(t, "by another it is",
		c.Propose(now.Add(proposalLifetime), []RequestUpdate{newRequestUpdate(2, 2)})[0], timeAt("a", 2))
	c.SetMachine("a", 0, 0, nil)
	checkProposals(t, "gone", c.Propose(now.Add(proposalLifetime), []RequestUpdate{newRequestUpdate(2, 5)})[0],
		timeAt("b", 4))
	checkProposals(t, "nothing wanted", c.Propose(now, []RequestUpdate{{ID: 2, Removed: true}})[0])
	checkProposals(t, "the last word counts",
		c.Propose(now, []RequestUpdate{newRequestUpdate(3, 1), {ID: 3, Removed: true}})[0])
}

// TestIsProposable checks that the schedd does not propose for requests that need a view
// of the whole cell.
func TestIsProposable(t *testing.T) {
	c := New("s")
	addMachine(t, c, "a", 1, 4, 4)
	c.SetSynced()
	gang, reserved, stream, limited, broken := newRequestUpdate(1, 2), newRequestUpdate(2, 1), newRequestUpdate(3, 1),
		newRequestUpdate(4, 1), newRequestUpdate(5, 1)
	gang.Gang, reserved.Reservation, stream.Ad = 2, "r", `[AppClass = "stream"]`
	limited.Ad, broken.Ad = `[ConcurrencyLimits = "x"]`, "[["
	unknown := newRequestUpdate(6, 1)
	unknown.Ad = ""
	for i, list := range c.Propose(time.Unix(1, 0),
		[]RequestUpdate{gang, reserved, stream, limited, broken, unknown, newRequestUpdate(7, 1)}) {
		if want := i == 6; want != (len(list) == 1) {
			t.Errorf("request %d: %v", i+1, list)
		}
	}
}

// TestParts checks that schedds that act at the same time on the same ads choose
// different machines. It also checks that a request's own Rank takes precedence and that
// the parts are of similar size.
func TestParts(t *testing.T) {
	const schedds, machines = 4, 400
	chosen := map[string]int{}
	for part := range schedds {
		c := New(fmt.Sprint("s", part))
		for i := range machines {
			addMachine(t, c, fmt.Sprintf("m%03d", i), 1, 1, 1)
		}
		c.SetSynced()
		c.SetPolicy(part, schedds)
		for _, one := range c.Propose(time.Unix(1, 0), []RequestUpdate{newRequestUpdate(1, machines/schedds/2)})[0] {
			chosen[one.Machine] += one.Units
		}
		ranked := newRequestUpdate(2, 1)
		ranked.Ad = `[Rank = TARGET.Name == "m007"]`
		checkProposals(t, "ranked", c.Propose(time.Unix(9, 0), []RequestUpdate{ranked})[0], timeAt("m007", 1))
	}
	if len(chosen) != machines/2 {
		t.Errorf("%d machines were chosen by one, %d by all", len(chosen), machines/2)
	}
}

// TestQueues checks that the schedd proposes places in machine queues when nothing is
// free, the shortest wait first.
func TestQueues(t *testing.T) {
	c := New("s")
	for i, wait := range []int{90, 30, 60} {
		ad, err := classad.Parse(fmt.Sprintf(`[Name = "q%d"; TotalCpus = 4; Cpus = 0; TotalMemory = 4096; Memory = 4096; RUs = { [
			Name = "cpu"; TotalCpus = 4; Cpus = 0; StreamCpus = 4; TotalMemory = 4096; Memory = 4096; Running = 4; QueueRoom = 1; PredictedWait = %d ] }]`, i, wait))
		if err != nil {
			t.Fatal(err)
		}
		c.SetMachine(fmt.Sprint("q", i), 1, 1, ad)
	}
	c.SetSynced()
	got := c.Propose(time.Unix(1, 0), []RequestUpdate{newRequestUpdate(1, 2)})[0]
	checkProposals(t, "queues", got, match.SelfPlacement{Machine: "q1", Units: 1, Waiting: true},
		match.SelfPlacement{Machine: "q2", Units: 1, Waiting: true})
}
