package propose

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/match"
)

// machine tells a copy of a machine of so many cores, of which some are free.
func machine(t *testing.T, c *Copy, name string, sequence uint64, cpus, free int) {
	t.Helper()
	ad, err := classad.Parse(fmt.Sprintf("[Name = %q; TotalCpus = %d; Cpus = %d; TotalMemory = 65536; Memory = 65536]", name, cpus, free))
	if err != nil {
		t.Fatal(err)
	}
	c.Machine(name, 1, sequence, ad)
}

func wants(id uint64, n int) Update {
	return Update{
		ID: id, Owner: "ann", Band: roost.Batch, Wanted: n, Ad: "[]", Resources: roost.Resources{CPU: 1000, Memory: roost.GiB},
	}
}

func at(name string, units int) match.Proposal { return match.Proposal{Machine: name, Units: units} }

func check(t *testing.T, what string, got []match.Proposal, want ...match.Proposal) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// TestCopy holds that what was proposed and granted is not proposed again until the ads show it, or nobody speaks of it any more.
func TestCopy(t *testing.T) {
	now, c := time.Unix(100, 0), New("s")
	machine(t, c, "a", 1, 4, 4)
	machine(t, c, "b", 1, 4, 4)
	check(t, "before all machines are known", c.Propose(now, []Update{wants(1, 3)})[0])
	c.Synced()
	check(t, "first", c.Propose(now, []Update{wants(1, 3)})[0], at("a", 3))
	check(t, "what another request was promised is taken", c.Propose(now, []Update{wants(2, 2)})[0], at("a", 1), at("b", 1))
	check(t, "what it was promised itself is proposed anew", c.Propose(now, []Update{wants(1, 3)})[0], at("a", 3))
	for id := range uint64(3) {
		c.Granted(now, Grant{ID: id, Request: 1, Machine: "a", Resources: roost.Resources{CPU: 1000, Memory: roost.GiB}})
	}
	now = now.Add(proposalLife)
	check(t, "what was granted is taken, what was only proposed is not", c.Propose(now, []Update{wants(1, 8)})[0], at("a", 1), at("b", 4))
	c.Answered(now, 0, true, false, 2)
	c.Answered(now, 1, true, false, 2)
	c.Answered(now, 2, false, false, 0)
	machine(t, c, "a", 2, 4, 2)
	check(t, "the ad shows what was claimed, and who refused is not asked", c.Propose(now, []Update{wants(1, 8)})[0], at("b", 4))
	check(t, "by another it is", c.Propose(now.Add(proposalLife), []Update{wants(2, 2)})[0], at("a", 2))
	c.Machine("a", 0, 0, nil)
	check(t, "gone", c.Propose(now.Add(proposalLife), []Update{wants(2, 5)})[0], at("b", 4))
	check(t, "nothing wanted", c.Propose(now, []Update{{ID: 2, Gone: true}})[0])
	check(t, "the last word counts", c.Propose(now, []Update{wants(3, 1), {ID: 3, Gone: true}})[0])
}

// TestPlain holds that the schedd does not meddle with what needs a look at the whole.
func TestPlain(t *testing.T) {
	c := New("s")
	machine(t, c, "a", 1, 4, 4)
	c.Synced()
	gang, reserved, stream, licences, broken := wants(1, 2), wants(2, 1), wants(3, 1), wants(4, 1), wants(5, 1)
	gang.Gang, reserved.Reservation, stream.Ad = 2, "r", `[AppClass = "stream"]`
	licences.Ad, broken.Ad = `[ConcurrencyLimits = "x"]`, "[["
	unknown := wants(6, 1)
	unknown.Ad = ""
	for i, list := range c.Propose(time.Unix(1, 0), []Update{gang, reserved, stream, licences, broken, unknown, wants(7, 1)}) {
		if want := i == 6; want != (len(list) == 1) {
			t.Errorf("request %d: %v", i+1, list)
		}
	}
}

// TestParts holds that schedds that act at the same moment, on the same ads, choose different machines where there is enough for all, that a request's own
// Rank goes before that, and that the parts are of like size.
func TestParts(t *testing.T) {
	const schedds, machines = 4, 400
	chosen := map[string]int{}
	for part := range schedds {
		c := New(fmt.Sprint("s", part))
		for i := range machines {
			machine(t, c, fmt.Sprintf("m%03d", i), 1, 1, 1)
		}
		c.Synced()
		c.Rule(part, schedds)
		for _, one := range c.Propose(time.Unix(1, 0), []Update{wants(1, machines/schedds/2)})[0] {
			chosen[one.Machine] += one.Units
		}
		ranked := wants(2, 1)
		ranked.Ad = `[Rank = TARGET.Name == "m007"]`
		check(t, "ranked", c.Propose(time.Unix(9, 0), []Update{ranked})[0], at("m007", 1))
	}
	if len(chosen) != machines/2 {
		t.Errorf("%d machines were chosen by one, %d by all", len(chosen), machines/2)
	}
}

// TestQueues holds that places in queues are proposed where nothing is free, the shortest wait first.
func TestQueues(t *testing.T) {
	c := New("s")
	for i, wait := range []int{90, 30, 60} {
		ad, err := classad.Parse(fmt.Sprintf(`[Name = "q%d"; TotalCpus = 4; Cpus = 0; TotalMemory = 4096; Memory = 4096; RUs = { [
			Name = "cpu"; TotalCpus = 4; Cpus = 0; StreamCpus = 4; TotalMemory = 4096; Memory = 4096; Running = 4; QueueRoom = 1; PredictedWait = %d ] }]`, i, wait))
		if err != nil {
			t.Fatal(err)
		}
		c.Machine(fmt.Sprint("q", i), 1, 1, ad)
	}
	c.Synced()
	got := c.Propose(time.Unix(1, 0), []Update{wants(1, 2)})[0]
	check(t, "queues", got, match.Proposal{Machine: "q1", Units: 1, Waiting: true}, match.Proposal{Machine: "q2", Units: 1, Waiting: true})
}
