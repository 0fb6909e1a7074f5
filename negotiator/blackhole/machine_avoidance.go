package blackhole

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// MachineAvoidance is a machine that one submitter's jobs must avoid, because only they
// have failed there.
type MachineAvoidance struct {
	Machine string
	NodeSubmitter
	Until  time.Time
	Reason string
}

type avoidanceKey struct {
	machine string
	NodeSubmitter
}

// avoidancePeriod is how long a machine is avoided.
type avoidancePeriod struct {
	until        time.Time
	lastDuration time.Duration
	reason       string
}

func (s NodeSubmitter) compare(o NodeSubmitter) int {
	return cmp.Or(cmp.Compare(s.Node, o.Node), cmp.Compare(s.Owner, o.Owner))
}

// findAvoidances returns which submitters must avoid a machine from now on. It is a whole
// submit node with evidence of two of its owners, or otherwise one of the owners.
func (b *Detector) findAvoidances(now time.Time, name string, against *machineEvidence,
	pool PoolCounts) (list []MachineAvoidance) {
	for _, who := range slices.SortedFunc(maps.Keys(against.bySubmitter), NodeSubmitter.compare) {
		e := against.bySubmitter[who]
		if !e.isEnough() || who.Owner == "" && len(e.owners) < 2 || b.isAvoided(now, name, who) ||
			b.avoided[avoidanceKey{name, NodeSubmitter{Node: who.Node}}].isInForce(now) {
			continue
		}
		if n := b.avoidedCount(now, who); n >= max(1, pool.Machines/DrainFraction) ||
			pool.Machines-pool.Drained-n < 2 || len(b.avoided) >= maxFailurePairs {
			continue
		}
		key := avoidanceKey{name, who}
		a := b.avoided[key]
		if a == nil {
			a = &avoidancePeriod{}
			b.avoided[key] = a
		}
		a.lastDuration = min(max(2*a.lastDuration, roost.MinAvoidDuration), roost.MaxAvoidDuration)
		a.until, a.reason = now.Add(a.lastDuration), e.text()
		list = append(list, MachineAvoidance{name, who, a.until, a.reason})
	}
	return list
}

func (a *avoidancePeriod) isInForce(now time.Time) bool { return a != nil && now.Before(a.until) }

func (b *Detector) isAvoided(now time.Time, machine string, who NodeSubmitter) bool {
	return b.avoided[avoidanceKey{machine, who}].isInForce(now)
}

// avoidedCount returns how many machines a submitter avoids.
func (b *Detector) avoidedCount(now time.Time, who NodeSubmitter) (n int) {
	for key, a := range b.avoided {
		if key.NodeSubmitter == who && a.isInForce(now) {
			n++
		}
	}
	return n
}

// Avoidances lists what submitters avoid now, by machine.
func (b *Detector) Avoidances(now time.Time) (list []MachineAvoidance) {
	for key, a := range b.avoided {
		if a.isInForce(now) {
			list = append(list, MachineAvoidance{key.machine, key.NodeSubmitter, a.until, a.reason})
		}
	}
	slices.SortFunc(list, func(x, y MachineAvoidance) int {
		return cmp.Or(cmp.Compare(x.Machine, y.Machine), cmp.Compare(x.Node, y.Node), cmp.Compare(x.Owner, y.Owner))
	})
	return list
}
