package dispatch

// Kept is a node of which at least a part is drained, or reserved for others.
type Kept struct {
	Node        string
	From, Until Instant // Until 0: until it is taken back
	Reservation string  // of those who may run there; "": nobody
}

// Keep replaces what is known to be drained and reserved. What runs there runs on; a claim that would take a task that might not have ended by then is
// given back instead.
func (d *Dispatcher) Keep(all []Kept) {
	d.kept = make(map[string][]Kept, len(all))
	for _, k := range all {
		d.kept[k.Node] = append(d.kept[k.Node], k)
	}
}

// keptFree reports whether no task of a claim's request may begin on its node now.
func (d *Dispatcher) keptFree(now Instant, c *Claim) bool {
	list := d.kept[c.Node]
	if len(list) == 0 {
		return false
	}
	walltime, reservation := d.work.Within(c.Request)
	for _, k := range list {
		over := k.Until != 0 && now >= k.Until
		if !over && (k.Reservation == "" || k.Reservation != reservation) && (walltime <= 0 || now+walltime > k.From) {
			return true
		}
	}
	return false
}
