package fuzz

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/sim/faults"
)

// cellStream seeds a separate stream for the cell's queue. Other cases are the same with
// and without it.
const cellStream = 0x63656c6c

// maxMemberWrite is how long each write of a slow member may take. It is less than an
// election timeout.
const maxMemberWrite = 150 * time.Millisecond

func isMember(node string) bool { return strings.HasPrefix(node, memberPrefix) }

// drawCellQueue draws in every second case that the cell has a queue, and which jobs go
// into it.
func (c *PoolCase) drawCellQueue(r *faults.SeededRand, most int) {
	if most == 0 || !r.OneIn(2) {
		return
	}
	if c.Members = most; r.OneIn(5) {
		c.Members = 1
	}
	all := r.OneIn(2)
	for i := range c.Jobs {
		c.Jobs[i].InCell = all || r.OneIn(2)
	}
	for i := range c.Jobs { // a job inside an alloc set is in its queue
		inside := func(j CaseJob) bool { return j.IsAlloc && j.Number == c.Jobs[i].Inside }
		if set := slices.IndexFunc(c.Jobs, inside); set >= 0 && c.Jobs[i].Inside > 0 {
			c.Jobs[i].InCell = c.Jobs[set].InCell
		}
	}
}

// adaptFaults draws what happens to the members of the cell's queue alone. Bits flip on
// the disk of one member only: if a majority has damage, committed entries are lost.
func (c *PoolCase) adaptFaults(r *faults.SeededRand, kinds []faults.InjectionKind) {
	if c.Members == 0 {
		return
	}
	flipped := ""
	c.Faults = slices.DeleteFunc(c.Faults, func(f faults.Fault) bool {
		if f.Kind != faults.BitFlip || !isMember(f.Node) {
			return false
		}
		if flipped == "" {
			flipped = f.Node
		}
		return c.Members == 1 || f.Node != flipped
	})
	if slices.Contains(kinds, faults.Crash) {
		for range r.Between(1, 6) {
			c.Faults = append(c.Faults, c.drawLeaderCrash(r)...)
		}
	}
	if c.Members > 1 && slices.Contains(kinds, faults.Partition) {
		for range r.Between(1, 4) {
			c.Faults = append(c.Faults, c.drawLoneMembers(r)...)
		}
	}
	if slices.Contains(kinds, faults.SlowDisk) && r.OneIn(2) {
		c.Faults = append(c.Faults, c.drawSlowMembers(r)...)
	}
	if c.Members > 1 && slices.Contains(kinds, faults.Pause) && slices.Contains(kinds, faults.Partition) {
		for range r.Intn(3) {
			c.Faults = append(c.Faults, c.drawLateLeader(r)...)
		}
	}
	faults.SortByTime(c.Faults)
}

// drawLeaderCrash draws that whoever acts for the queue dies at a failpoint.
func (c *PoolCase) drawLeaderCrash(r *faults.SeededRand) (all []faults.Fault) {
	f := faults.Fault{At: r.Duration(c.FaultsEnd / 2), Kind: faults.Crash, N: r.Skewed(1, 10)}
	f.Failpoint = faults.PickOne(r, Failpoints(memberPrefix))
	f.Duration = r.SkewedDuration(10*time.Millisecond, min(10*time.Second, c.FaultsEnd-f.At))
	for i := range c.Members {
		f.Node = fmt.Sprint(memberPrefix, i)
		all = append(all, f)
	}
	return all
}

// drawLoneMembers draws that each member in turn is cut off from the others, and from
// nothing else. One that leads goes on until it notices.
func (c *PoolCase) drawLoneMembers(r *faults.SeededRand) (all []faults.Fault) {
	at, first := r.Duration(c.FaultsEnd/2), r.Intn(c.Members)
	for i := range c.Members {
		lone := (first + i) % c.Members
		f := faults.Fault{At: at, Kind: faults.Partition,
			Duration: r.SkewedDuration(time.Second, min(20*time.Second, c.FaultsEnd-at))}
		at = min(at+f.Duration+r.Duration(5*time.Second), c.FaultsEnd)
		for k := range c.Members {
			if f.Node, f.Peer = fmt.Sprint(memberPrefix, lone), fmt.Sprint(memberPrefix, k); k != lone {
				all = append(all, f)
				f.Node, f.Peer = f.Peer, f.Node
				all = append(all, f)
			}
		}
	}
	return all
}

// drawSlowMembers draws that all members have slow disks. What the leader decides takes
// long to be committed, though not so long that others become impatient.
func (c *PoolCase) drawSlowMembers(r *faults.SeededRand) (all []faults.Fault) {
	f := faults.Fault{Kind: faults.SlowDisk, Amount: 10*time.Millisecond + r.Duration(maxMemberWrite),
		Duration: c.FaultsEnd}
	for i := range c.Members {
		f.Node = fmt.Sprint(memberPrefix, i)
		all = append(all, f)
	}
	return all
}

// drawLateLeader draws that a member stands still, and that the others cannot reach a
// machine for longer. If it was the leader, its successor knows no more of the tasks
// there than the log has. When it goes on it must not lengthen their leases.
func (c *PoolCase) drawLateLeader(r *faults.SeededRand) (all []faults.Fault) {
	late := r.Intn(c.Members)
	pause := faults.Fault{At: r.Duration(c.FaultsEnd * 2 / 3), Kind: faults.Pause, Node: fmt.Sprint(memberPrefix, late)}
	pause.Duration = r.SkewedDuration(time.Second, min(20*time.Second, c.FaultsEnd-pause.At))
	machine := machineName(faults.PickOne(r, c.Machines).Number)
	all = append(all, pause)
	for i := range c.Members {
		if i == late {
			continue
		}
		cut := faults.Fault{At: pause.At, Kind: faults.Partition, Node: fmt.Sprint(memberPrefix, i), Peer: machine,
			Duration: min(pause.Duration+r.SkewedDuration(maxLease/4, 2*maxLease), c.FaultsEnd-pause.At)}
		back := cut
		back.Node, back.Peer = cut.Peer, cut.Node
		all = append(all, cut, back)
	}
	return all
}

// reduceMembers tries a pool whose cell has no queue, and one with a single member.
func (s *caseMinimizer) reduceMembers() {
	if s.smallest.Members == 0 {
		return
	}
	if s.tryChange(func(c *PoolCase) {
		c.Members, c.Jobs = 0, slices.Clone(c.Jobs)
		for i := range c.Jobs {
			c.Jobs[i].InCell = false
		}
		c.Faults = faultsOnKnown(c)
	}) || s.smallest.Members == 1 {
		return
	}
	s.tryChange(func(c *PoolCase) { c.Members = 1; c.Faults = faultsOnKnown(c) })
}
