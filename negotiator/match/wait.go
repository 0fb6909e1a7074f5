package match

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/share"
)

// What no machine has room for may wait on one, so that it starts the moment its turn comes there and not a round of messages later (HRM §3.3). The
// machines say how many more they let wait, and how long the next would (their algorithm 1); the plan sends a unit to the shortest wait.
//
// A place in a machine's queue is handed out last, when everybody had the chance to start something: bands from high to low, in turns by fair
// share, each place weighing as much as its claim. Where a request of a higher band still waits for a machine, no lower band gets a place in its
// queue, for that would put it before the higher one there. Stream requests never wait on a machine, nor does what takes licences, of which a queue would keep some that nobody uses.

// waiter is a machine in whose queues there is room.
type waiter struct {
	at   int
	wait float64 // seconds
	unit int
}

// placeWaiting hands out places in queues. The wants are in order.
func (p *plan) placeWaiting(wants []*want) {
	var room []int
	if p.queuers == 0 {
		return
	}
	for at, has := range p.queueing {
		if has && p.settled(at) {
			room = append(room, at)
		}
	}
	if len(room) == 0 {
		return
	}
	p.queues = make([]*gpu.Free, len(p.Machines))
	for _, at := range room {
		p.queues[at] = p.Machines[at].units
		for _, one := range p.Pending[p.Machines[at].Name] {
			if one.Waiting {
				p.queue(at, one.Unit)
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

// settled reports whether a machine's ad tells of all that it was given: else nobody knows how long one would wait there.
func (p *plan) settled(at int) bool {
	return p.versions[at] == 0 && !slices.ContainsFunc(p.Pending[p.Machines[at].Name], func(one Promise) bool { return !one.Waiting })
}

// queue notes that one more waits for a unit. How long it will take there nobody knows: it is taken to be as long as those before it.
func (p *plan) queue(at, unit int) {
	f := p.queues[at]
	if f == p.Machines[at].units {
		f = f.Clone()
		p.queues[at] = f
	}
	if unit < 0 || unit >= f.Len() {
		return
	}
	q := f.Queue(unit)
	q.Wait += max(q.Wait/float64(q.Length+1), 1)
	q.Length, q.Room = q.Length+1, q.Room-1
	f.SetQueue(unit, q)
}

// suits reports whether a machine and a request agree, resources aside.
func (p *plan) suits(w *want, at int) bool {
	m := p.Machines[at]
	if _, avoid := w.Avoid[m.Name]; avoid {
		return false
	}
	_, ok := p.query(w.Class).Match(m.row, &p.env)
	return ok
}

// queueBand lets the submitters of one band take turns at places in the queues.
func (p *plan) queueBand(wants []*want, room []int) {
	var queues [][]*want
	var claimants []share.Claimant
	for i, w := range wants {
		if w.left <= w.NoWait || w.Now || w.Gang > 1 || w.Class.App != gpu.Batch || w.Class.Alone || len(w.Class.Limits) > 0 {
			continue
		}
		if n := len(queues); n > 0 && queues[n-1][0].Submitter == w.Submitter {
			queues[n-1] = append(queues[n-1], wants[i])
			continue
		}
		queues = append(queues, []*want{w})
		claimants = append(claimants, w.account.claimant(w.Submitter))
	}
	turns := share.NewTurns(claimants)
	for {
		i, _, ok := turns.Next(0)
		if !ok {
			return
		}
		for len(queues[i]) > 0 && !p.queueOne(queues[i][0], room) {
			queues[i] = queues[i][1:]
		}
		if len(queues[i]) == 0 {
			turns.Leave(i)
			continue
		}
		turns.Took(i, queues[i][0].unit)
	}
}

// queueOne puts one unit of a request into the queue with the shortest wait.
func (p *plan) queueOne(w *want, room []int) bool {
	if w.left <= w.NoWait || w.Gang > 1 || p.allowed(w, 1) == 0 {
		return false
	}
	if p.queueProposed(w) {
		return true
	}
	if w.waiters == nil {
		w.waiters = []waiter{}
		for _, at := range room {
			if p.suits(w, at) {
				w.waiters = append(w.waiters, waiter{at: at})
			}
		}
	}
	best := waiter{at: -1}
	for _, c := range w.waiters {
		f := p.queues[c.at]
		unit, ok := f.CanWait(w.Class.request())
		if !ok || !p.mayQueue(w, c.at) {
			continue
		}
		c.unit, c.wait = unit, f.Queue(unit).Wait
		if best.at < 0 || cmp.Or(cmp.Compare(c.wait, best.wait), strings.Compare(p.Machines[c.at].Name, p.Machines[best.at].Name)) < 0 {
			best = c
		}
	}
	if best.at < 0 {
		return false
	}
	p.enqueue(w, best)
	return true
}

// mayQueue reports whether a want may wait for its turn on a machine: where something is held, only those for whom it is.
func (p *plan) mayQueue(w *want, at int) bool {
	if !p.within(w, at) {
		return false
	}
	f := p.futures[at]
	return f == nil || !slices.ContainsFunc(f.holds, func(h hold) bool { return !h.entitled(w) })
}

// enqueue puts one unit of w into a queue.
func (p *plan) enqueue(w *want, to waiter) {
	p.queue(to.at, to.unit)
	p.use(w, 1)
	w.left--
	p.out.Grants = append(p.out.Grants, Grant{Request: w.Request, Machine: p.Machines[to.at], Units: 1, Waiting: true, Unit: to.unit, Wait: to.wait})
}
