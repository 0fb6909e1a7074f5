package dispatch

import "github.com/roost-batch/roost"

// UnavailableWindow is a node of which at least a part is drained, or reserved for
// others.
type UnavailableWindow struct {
	Node        string
	From, Until roost.BootTime // Until 0: until it is taken back
	Reservation string         // of those who may run there; "": nobody

	order uint64 // the later it became known, the larger
}

// SetUnavailable replaces what is known to be drained and reserved. What runs there runs
// on; a claim that would take a task that might not have ended by then is given back
// instead.
func (d *Dispatcher) SetUnavailable(all []UnavailableWindow) {
	before := d.unavailable
	d.unavailable = make(map[string][]UnavailableWindow, len(all))
	d.windowOrder++
	for _, k := range all {
		k.order = d.windowOrder
		for _, old := range before[k.Node] {
			if k.order = old.order; k == old {
				break
			}
			k.order = d.windowOrder
		}
		d.unavailable[k.Node] = append(d.unavailable[k.Node], k)
	}
}

// SetNodeEnd notes when a node is gone, because its allocation in another batch system
// ends; 0: nobody knows.
func SetNodeEnd(d *Dispatcher, node string, end roost.BootTime) {
	if end == 0 {
		delete(d.nodeEnds, node)
		return
	}
	if d.nodeEnds == nil {
		d.nodeEnds = map[string]roost.BootTime{}
	}
	d.nodeEnds[node] = end
}

// endsTooSoon reports whether a claim's node is gone before its next task may have ended.
func endsTooSoon(d *Dispatcher, now roost.BootTime, c *Claim) bool {
	end, ok := d.nodeEnds[c.Node]
	if !ok {
		return false
	}
	walltime, _ := d.jobQueue.RuntimeBound(c.Request)
	return walltime <= 0 || now+walltime > end
}

// isUnavailable reports whether no task of a claim's request may begin on its node now. A
// node may be reserved in part. The leader knows of which; here it is known of the first
// task of a claim, if that could not have ended in time even when the claim was granted:
// then the leader has given a part that nobody has reserved.
func (d *Dispatcher) isUnavailable(now roost.BootTime, c *Claim) bool {
	if endsTooSoon(d, now, c) {
		return true
	}
	list := d.unavailable[c.Node]
	if len(list) == 0 {
		return false
	}
	walltime, reservation := d.jobQueue.RuntimeBound(c.Request)
	for _, k := range list {
		endsTooLate := func(begin roost.BootTime) bool { return walltime <= 0 || begin+walltime > k.From }
		if c.isNew() && k.order <= c.windowOrder && endsTooLate(c.grantedAt) {
			continue
		}
		over := k.Until != 0 && now >= k.Until
		if !over && (k.Reservation == "" || k.Reservation != reservation) && endsTooLate(now) {
			return true
		}
	}
	return false
}

// isNew reports whether a claim has had no task yet.
func (c *Claim) isNew() bool { return c.Attempt.Attempt == 0 && !c.adopted }
