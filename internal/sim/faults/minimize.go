package faults

// Minimize returns as few of some things as it finds for which fails still says true, in
// their order: none of what it returns can be left out alone. It is "ddmin" (Zeller,
// Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28, 2002):
// half of them is left out, then the other half, then smaller and smaller parts. fails is
// true of all of them. It gives up early, with what it has, when enough says so.
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

// dropPart leaves out one of so many parts of a list, the first for which the rest still
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

// ShortenFaults puts smaller faults in the place of those for which that can be done so
// that they still fail, as long as that is possible and it is not enough. fails is true
// of all.
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
