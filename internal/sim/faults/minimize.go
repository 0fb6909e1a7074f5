package faults

// Minimize returns a minimal sublist for which fails still returns true. The order is
// preserved, and no single element of the result can be left out. The algorithm is
// "ddmin" (Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE
// TSE 28, 2002): it leaves out one half, then the other half, then smaller and smaller
// parts. fails must be true of the whole list. It stops early when enough returns true.
func Minimize[T any](all []T, fails func([]T) bool, enough func() bool) []T {
	if len(all) > 0 && !enough() && fails(nil) {
		return nil
	}
	parts := 2
	for len(all) >= 2 && !enough() {
		rest, smaller := dropPart(all, parts, fails, enough)
		switch {
		case smaller:
			all, parts = rest, max(parts-1, 2)
		case parts == len(all):
			return all
		default:
			parts = min(2*parts, len(all))
		}
	}
	return all
}

// dropPart leaves out the first of the given number of parts without which the list still
// fails.
func dropPart[T any](all []T, parts int, fails func([]T) bool, enough func() bool) (rest []T, ok bool) {
	for part := range parts {
		from, to := part*len(all)/parts, (part+1)*len(all)/parts
		if from == to {
			continue
		}
		if enough() {
			return nil, false
		}
		rest = append(append(make([]T, 0, len(all)-(to-from)), all[:from]...), all[to:]...)
		if fails(rest) {
			return rest, true
		}
	}
	return nil, false
}

// ShortenFaults replaces faults by their reductions as long as the schedule still fails.
// fails must be true of the whole list. It stops early when enough returns true.
func ShortenFaults(all []Fault, fails func([]Fault) bool, enough func() bool) []Fault {
	for again := true; again; {
		again = false
		for i := range all {
			for _, smaller := range all[i].Reductions() {
				if enough() {
					return all
				}
				next := append([]Fault(nil), all...)
				next[i] = smaller
				if fails(next) {
					all, again = next, true
					break
				}
			}
		}
	}
	return all
}
