package dispatch

import "github.com/roost-batch/roost"

// UnavailableWindow is a node of which at least a part is drained, or reserved for
// others.
type UnavailableWindow struct {
	Node        string
	From, Until roost.BootTime // Until 0: until it is taken back
	Reservation string         // of those who may run there; "": nobody
}

// SetUnavailable replaces what is known to be drained and reserved. What runs there runs
// on; a claim that would take a task that might not have ended by then is given back
// instead.
func (d *Dispatcher) SetUnavailable(all []UnavailableWindow) {
	d.unavailable = make(map[string][]UnavailableWindow, len(all))
	for _, k := range all {
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

// isAvailable reports whether no task of a claim's request may begin on its node now.
func (d *Dispatcher) isAvailable(now roost.BootTime, c *Claim) bool {
	if endsTooSoon(d, now, c) {
		return true
	}
	list := d.unavailable[c.Node]
	if len(list) == 0 {
		return false
	}
	walltime, reservation := d.jobQueue.RuntimeBound(c.Request)
	for _, k := range list {
		over := k.Until != 0 && now >= k.Until
		if !over && (k.Reservation == "" || k.Reservation != reservation) && (walltime <= 0 || now+walltime > k.From) {
			return true
		}
	}
	return false
}
