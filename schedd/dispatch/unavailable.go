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

// isAvailable reports whether no task of a claim's request may begin on its node now.
func (d *Dispatcher) isAvailable(now roost.BootTime, c *Claim) bool {
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
