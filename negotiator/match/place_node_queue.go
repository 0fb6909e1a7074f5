package match

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// A unit that finds no room on any machine may wait in the queue of one, so that it
// starts as soon as a task ends there, without a round of messages (HRM §3.3). The
// machines advertise how many more tasks may wait and the predicted wait of the next
// (their algorithm 1); the plan sends a unit to the shortest wait.
//
// Places in node queues are given last, when every request has had the chance to start:
// bands from high to low, in turns by fair share, each place with the weight of its
// claim. Where a request of a higher band still waits for a machine, no lower band gets a
// place in its queue, because it would run before the higher one there. Stream requests
// never wait on a machine, and neither do requests that take licences, because licences
// would be unused while their holders wait.

// queueCandidate is a machine with a free place in a node queue.
type queueCandidate struct {
	machine     int
	waitSeconds float64 // predicted wait, in seconds
	unit        int
}

// placeWaiting gives places in node queues. The requests are in order.
func (p nodeQueuePlanner) placeWaiting(wants []*requestState) {
	var room []int
	if p.queueMachines == 0 {
		return
	}
	for at, has := range p.acceptsQueued {
		if has && p.adIsCurrent(at) {
			room = append(room, at)
		}
	}
	if len(room) == 0 {
		return
	}
	p.unitQueues = make([]*gpu.FreeResources, len(p.Machines))
	for _, at := range room {
		p.unitQueues[at] = p.Machines[at].units
		for _, one := range p.Pending[p.Machines[at].Name] {
			if one.Waiting {
				p.countQueued(at, one.Unit)
			}
		}
	}
	for len(wants) > 0 {
		n := 1
		for n < len(wants) && wants[n].with(wants[0]) {
			n++
		}
		p.queueBand(wants[:n], room)
		wants = wants[n:]
	}
}

// adIsCurrent reports whether a machine's ad shows all its grants. If not, its predicted
// wait is wrong.
func (p nodeQueuePlanner) adIsCurrent(at int) bool {
	return p.versions[at] == 0 && !slices.ContainsFunc(p.Pending[p.Machines[at].Name], func(one PendingGrant) bool {
		return !one.Waiting
	})
}

// countQueued counts one more unit in a node queue. Its run time is unknown, so it is
// assumed to be the mean of those before it.
func (p nodeQueuePlanner) countQueued(at, unit int) {
	f := p.unitQueues[at]
	if f == p.Machines[at].units {
		f = f.Clone()
		p.unitQueues[at] = f
	}
	if unit < 0 || unit >= f.Len() {
		return
	}
	q := f.Queue(unit)
	q.WaitSeconds += max(q.WaitSeconds/float64(q.Length+1), 1)
	q.Length, q.FreePlaces = q.Length+1, q.FreePlaces-1
	f.SetQueue(unit, q)
}

// matches reports whether the Requirements of machine and request hold, whatever is free.
func (p nodeQueuePlanner) matches(w *requestState, at int) bool {
	m := p.Machines[at]
	if _, avoid := w.Avoid[m.Name]; avoid {
		return false
	}
	_, ok := p.compiledQuery(w.Class).Match(m.row, &p.env)
	return ok
}

// queueBand lets the submitters of one band take turns at places in node queues.
func (p nodeQueuePlanner) queueBand(wants []*requestState, room []int) {
	var queues [][]*requestState
	var claimants []fairshare.WaitingSubmitter
	for i, w := range wants {
		if w.unitsLeft <= w.NoQueue || w.Now || w.Gang > 1 || w.Class.AppClass != gpu.BatchClass ||
			w.Class.takesMachineOnce() || len(w.Class.Limits) > 0 {
			continue
		}
		if n := len(queues); n > 0 && queues[n-1][0].Submitter == w.Submitter {
			queues[n-1] = append(queues[n-1], wants[i])
			continue
		}
		queues = append(queues, []*requestState{w})
		claimants = append(claimants, w.submitter.waitingSubmitter(w.Submitter, w.Band))
	}
	turns := fairshare.NewTurnQueue(claimants)
	for {
		i, _, ok := turns.Next(0)
		if !ok {
			return
		}
		for len(queues[i]) > 0 && !p.enqueueShortest(queues[i][0], room) {
			queues[i] = queues[i][1:]
		}
		if len(queues[i]) == 0 {
			turns.RemoveClaimant(i)
			continue
		}
		turns.AddTaken(i, queues[i][0].unitWeight)
	}
}

// enqueueShortest puts one unit of a request into the queue with the shortest wait.
func (p nodeQueuePlanner) enqueueShortest(w *requestState, room []int) bool {
	if w.unitsLeft <= w.NoQueue || w.Gang > 1 || p.unitsWithinLimits(w, 1) == 0 {
		return false
	}
	if p.selfPlacements().enqueueSelfPlacement(w) {
		return true
	}
	if w.queueCandidates == nil {
		w.queueCandidates = []queueCandidate{}
		for _, at := range room {
			if p.matches(w, at) {
				w.queueCandidates = append(w.queueCandidates, queueCandidate{machine: at})
			}
		}
	}
	best := queueCandidate{machine: -1}
	for _, c := range w.queueCandidates {
		f := p.unitQueues[c.machine]
		unit, ok := f.QueueableUnit(w.Class.deviceRequest())
		if !ok || !p.mayEnqueue(w, c.machine) {
			continue
		}
		c.unit, c.waitSeconds = unit, f.Queue(unit).WaitSeconds
		if best.machine < 0 || cmp.Or(cmp.Compare(c.waitSeconds, best.waitSeconds),
			strings.Compare(p.Machines[c.machine].Name, p.Machines[best.machine].Name)) < 0 {
			best = c
		}
	}
	if best.machine < 0 {
		return false
	}
	p.enqueueUnit(w, best)
	return true
}

// mayEnqueue reports whether a request may wait on a machine. On a machine with
// reservations only their holders may.
func (p nodeQueuePlanner) mayEnqueue(w *requestState, at int) bool {
	if !p.backfill().inReservation(w, at) {
		return false
	}
	f := p.timelines[at]
	return f == nil || !slices.ContainsFunc(f.holders, func(h reservationHolder) bool { return !h.mayUse(w) })
}

// enqueueUnit puts one unit of w into a queue.
func (p nodeQueuePlanner) enqueueUnit(w *requestState, to queueCandidate) {
	p.countQueued(to.machine, to.unit)
	p.countPlaced(w, 1)
	w.unitsLeft--
	p.result.Grants = append(p.result.Grants, Grant{Request: w.Request, Machine: p.Machines[to.machine], Units: 1,
		Waiting: true, Unit: to.unit, WaitSeconds: to.waitSeconds})
}
