package match

// naiveLimits counts what is left of each limit.
type naiveLimits map[string]int

func newNaiveLimits(s *Snapshot) naiveLimits {
	left := naiveLimits{}
	for name, l := range s.Limits {
		left[name] = l.Total - l.Used
	}
	return left
}

// room is how many units a request may start.
func (l naiveLimits) room(r *Request) int {
	n := r.Wanted
	for name, count := range needs(r) {
		if left, known := l[name]; known {
			n = min(n, max(0, left)/count)
		}
	}
	return n
}

func (l naiveLimits) take(r *Request) {
	for name, count := range needs(r) {
		if _, known := l[name]; known {
			l[name] -= count
		}
	}
}

// needs is what a unit of a request takes of each limit.
func needs(r *Request) map[string]int {
	all := map[string]int{}
	for _, l := range r.Class.Limits {
		all[l.Name] += l.Count
	}
	for _, name := range r.RunLimits {
		all[name]++
	}
	return all
}
