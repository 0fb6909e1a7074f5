package pool

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/schedd/queue"
)

// cellPool is a pool whose jobs go into the cell's queue.
func cellPool(members int, runtime time.Duration) SimulationConfig {
	c := SimulationConfig{Seed: 11, Managers: 3, Schedds: 1, CellMembers: members, SelfCheck: true}
	for range 3 {
		c.Machines = append(c.Machines, MachineConfig{
			Resources: roost.Resources{CPU: 4000, Memory: 16 << 30, Disk: 100 << 30}})
	}
	ad := classad.New()
	ad.SetInt(roost.AttrRequestCpus, 1)
	ad.SetInt(roost.AttrRequestMemory, 512)
	for i := range 3 {
		c.Jobs = append(c.Jobs, JobConfig{At: time.Duration(1+i) * time.Second, InCell: true,
			Spec: queue.SubmitSpec{Ad: ad, Count: 3}, Runtimes: []time.Duration{runtime}, Output: true})
	}
	return c
}

// TestCellLeaderDies has each leader of the cell's queue die, or be cut off from the
// others, in turn. No task is touched, and all of them end.
func TestCellLeaderDies(t *testing.T) {
	for _, members := range []int{1, 3} {
		for _, cut := range []bool{false, true} {
			if cut && members == 1 {
				continue
			}
			a := audit.New(audit.DefaultRules())
			c := cellPool(members, 90*time.Second)
			c.Observe = a.Observe
			p, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			led := map[string]bool{}
			for i := range 6 {
				p.CallAt(time.Duration(10+10*i)*time.Second, func() {
					leader := p.cell.leader(0)
					if leader == nil {
						t.Errorf("%d members: nobody leads at %v", members, p.Now())
						return
					}
					if led[leader.name] = true; !cut {
						p.Faults().CrashDaemon(leader.name, 5*time.Second)
						return
					}
					for _, m := range p.cell.members {
						if m != leader {
							p.Faults().CutLink(leader.name, m.name, 8*time.Second)
							p.Faults().CutLink(m.name, leader.name, 8*time.Second)
						}
					}
				})
			}
			if !p.RunToEnd(time.Hour) {
				t.Fatalf("%d members: %d jobs are not over after %v", members, p.unfinished, p.Now())
			}
			a.Finish(p.Now())
			for _, b := range a.Violations() {
				t.Errorf("%d members: %v", members, b.String())
			}
			if len(led) < min(members, 2) {
				t.Errorf("%d members: only %v have led", members, led)
			}
			for i, o := range p.Outcomes() {
				if o.ID.Host != cellQueueName || o.Attempts != 3 {
					t.Errorf("%d members: job %d is %v, and had %d attempts of 3 tasks", members, i, o.ID, o.Attempts)
				}
			}
		}
	}
}
