package slot

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// TestRestartAtRandom simulates batch tasks that go through a queue, and restarts the
// startd at random. Each new core is made from what is on disk. Every task that runs must
// still be there, no end of one may be lost, nothing may be counted twice, and a claim
// that waited must wait again.
func TestRestartAtRandom(t *testing.T) {
	yields := 0
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { yields += restartRandomly(t, rand.New(rand.NewPCG(seed, 3))) })
	}
	if yields < 1000 {
		t.Errorf("only %d claims passed their resources on: the play is of no use", yields)
	}
}

func restartRandomly(t *testing.T, r *rand.Rand) (yields int) {
	opt := newTestTable(t, QueueOptions{Length: 3}).opt
	opt.Units = unitLayouts()[r.IntN(len(unitLayouts()))]
	c := New(opt)
	files := map[ClaimID]gpu.Placement{} // by what was written last
	session, job, now := uint64(1), uint64(0), roost.BootTime(1)
	connect := func() {
		if err := c.Connected(now, session, "s1", 1, session); err != nil {
			t.Fatal(err)
		}
	}
	act := func() {
		c.invariants().Check()
		for effects, _ := c.Todo(now); len(effects) > 0; effects, _ = c.Todo(now) {
			for _, e := range effects {
				switch e := e.(type) {
				case CreateClaim:
					if e.Claim.HasResources() {
						files[e.Claim.ID] = clone(e.Claim.Placement)
					}
					c.ClaimCreated(e.Claim.ID)
				case RecordPlacement:
					files[e.Claim.ID] = clone(e.Claim.Placement)
				case StartAttempt:
					c.Started(now, e.Claim.ID, e.Attempt)
				case RemoveClaim:
					delete(files, e.Claim.ID)
				}
			}
			c.invariants().Check()
		}
		checkNoIdleFit(t, c)
	}
	connect()
	for step := range 300 {
		now += roost.BootTime(r.IntN(100)) * time.Millisecond
		claims := c.claims.sorted()
		pick := func(ok func(*Claim) bool) *Claim {
			some := slices.DeleteFunc(slices.Clone(claims), func(c *Claim) bool { return !ok(c) })
			if len(some) == 0 {
				return nil
			}
			return some[r.IntN(len(some))]
		}
		switch r.IntN(8) {
		case 0, 1:
			c.DecideClaim(now, ClaimRequest{
				Session: session, Schedd: "s1", Grant: roost.GrantID{Epoch: 1, ID: uint64(step)}, TokenValid: true,
				Lease: 1000 * time.Hour, CanQueue: true, Resources: randomResources(r, c),
			})
		case 2, 3:
			if claim := pick(func(c *Claim) bool {
				return c.State == Idle || c.State == Waiting && !c.hasQueuedAttempt()
			}); claim != nil {
				job++
				a := roost.AttemptID{Task: roost.JobID{Seq: job, Host: "s1"}.Task(0), Attempt: 1}
				if err := c.Activate(now, session, "s1", claim.ID, a, AttemptInfo{}); err != nil {
					t.Fatal(err)
				}
			}
		case 4, 5:
			if claim := pick(func(c *Claim) bool { return c.State == Busy }); claim != nil {
				if c.Ended(now, claim.ID, claim.Attempt); !claim.HasResources() {
					yields++
				}
			}
		case 6:
			if claim := pick(func(c *Claim) bool { return c.State == Exited }); claim != nil {
				c.Acknowledged(session, "s1", claim.Attempt)
			}
		case 7:
			if r.IntN(6) == 0 {
				act()
				c, session = restarted(t, c, files, now), session+1
				connect()
			} else if claim := pick(func(c *Claim) bool {
				return c.State == Idle || c.State == Waiting
			}); claim != nil && r.IntN(3) == 0 {
				c.Release(session, "s1", claim.ID)
			}
		}
		act()
	}
	return yields
}

func clone(p gpu.Placement) gpu.Placement {
	p.Parts, p.Shares = slices.Clone(p.Parts), slices.Clone(p.Shares)
	return p
}

// restarted returns a core made from what the process of another core has left. It adopts
// claims in the order in which the startd does.
func restarted(t *testing.T, old *ClaimTable, files map[ClaimID]gpu.Placement, now roost.BootTime) *ClaimTable {
	t.Helper()
	opt := old.opt
	opt.FirstID = old.ids.next
	c := New(opt)
	all := old.claims.sorted()
	rank := func(c *Claim) int {
		_, placed := files[c.ID]
		switch {
		case c.hasLiveAttempt():
			return 0
		case placed:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b *Claim) int { return rank(a) - rank(b) })
	for _, claim := range all {
		own := Claim{
			ID: claim.ID, Schedd: claim.Schedd, Owner: claim.Owner, Class: claim.Class, CanQueue: claim.CanQueue,
			Resources: claim.Resources,
			Placement: clone(files[claim.ID]), State: Idle, Lease: now + claim.LeasePeriod,
			LeasePeriod: claim.LeasePeriod,
		}
		if claim.hasLiveAttempt() || claim.State == Exited {
			own.State, own.Attempt, own.Running, own.ProcessesGone = Busy, claim.Attempt, claim.hasLiveAttempt(),
				claim.State == Exited
		}
		if err := c.Adopt(now, own); err != nil {
			t.Fatalf("%v, holding %v: %v", claim, claim.HasResources(), err)
		}
		if got, _ := c.Claim(claim.ID); claim.hasLiveAttempt() && !got.HasResources() {
			t.Fatalf("%v runs, and holds nothing after a restart", claim)
		}
	}
	c.invariants().Check()
	for _, claim := range all { // the hands say how attempts ended that nobody has recorded
		if claim.State == Exited {
			c.Ended(now, claim.ID, claim.Attempt)
			if got, ok := c.Claim(claim.ID); !ok || got.State != Exited {
				t.Fatalf("the end of %v is lost: it is %v now", claim, got)
			}
		}
	}
	c.invariants().Check()
	return c
}
