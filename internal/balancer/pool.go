package balancer

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Method is how a backend is chosen.
type Method uint8

// The methods.
const (
	// LeastConnections chooses the backend with the fewest connections for its weight
	LeastConnections Method = iota
	// RoundRobin chooses the backends in turn, each as often as its weight says
	RoundRobin
)

// Backend is a task that takes connections.
type Backend struct {
	Address string // "10.0.0.1:20001"
	Weight  int    // 0: it gets connections only if no other can
	// its machine is silent, or the names are not whole: it gets connections only if no
	// other can
	Doubtful bool
}

// A backend that has refused maxRefused connections in a row gets none for ejection,
// unless no other can.
const (
	maxRefused = 3
	ejection   = 10 * time.Second
)

// Pool is the backends of a service. It is safe for concurrent use.
type Pool struct {
	method   Method
	mu       sync.Mutex
	backends map[string]*backendState // by address
	changed  chan struct{}            // closed and replaced by each Set
	turn     uint64                   // of the last choice
}

// backendState is a backend and what it does. It stays as long as it has connections.
type backendState struct {
	Backend
	isSet        bool
	connections  int
	refused      int // in a row
	ejectedUntil time.Time
	chosenAt     uint64 // turn of the last choice
	credit       int    // of weighted round robin
}

// NewPool returns a pool without backends.
func NewPool(m Method) *Pool {
	return &Pool{method: m, backends: map[string]*backendState{}, changed: make(chan struct{})}
}

// Set replaces the backends. Connections to others go on.
func (p *Pool) Set(list []Backend) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.backends {
		b.isSet = false
	}
	for _, b := range list {
		s := p.backends[b.Address]
		if s == nil {
			s = &backendState{}
			p.backends[b.Address] = s
		}
		s.Backend, s.isSet = b, true
	}
	for address, b := range p.backends {
		if !b.isSet && b.connections == 0 {
			delete(p.backends, address)
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// worstPreference is more than preference ever is.
const worstPreference = 3

// preference orders backends: those with a higher number only get a connection if there
// is none with a lower one.
func (b *backendState) preference(now time.Time) int {
	switch {
	case b.Doubtful:
		return 2
	case b.Weight <= 0 || now.Before(b.ejectedUntil):
		return 1
	}
	return 0
}

// acquire chooses a backend that is not among those tried, and counts a connection. One
// of another machine than those of slow is better. If there is none, changed is closed
// when the backends have changed.
func (p *Pool) acquire(now time.Time, tried, slow []string) (b *backendState, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var candidates []*backendState
	slowHosts := make([]string, 0, maxDials)
	for _, address := range slow {
		slowHosts = append(slowHosts, hostOf(address))
	}
	best := 0
	for _, b := range p.backends {
		if !b.isSet || slices.Contains(tried, b.Address) {
			continue
		}
		preference := b.preference(now)
		if len(slowHosts) > 0 && slices.Contains(slowHosts, hostOf(b.Address)) {
			preference += worstPreference
		}
		if len(candidates) > 0 && preference < best {
			candidates = candidates[:0]
		}
		if len(candidates) == 0 {
			best = preference
		}
		if preference == best {
			candidates = append(candidates, b)
		}
	}
	if len(candidates) == 0 {
		return nil, p.changed
	}
	if p.method == RoundRobin {
		b = nextInTurn(candidates)
	} else {
		b = slices.MinFunc(candidates, compareLoads)
	}
	p.turn++
	b.chosenAt = p.turn
	b.connections++
	return b, nil
}

// compareLoads orders backends by connections for their weight, then by the time of the
// last choice, then by address.
func compareLoads(a, b *backendState) int {
	return cmp.Or(cmp.Compare((a.connections+1)*max(b.Weight, 1), (b.connections+1)*max(a.Weight, 1)),
		cmp.Compare(a.chosenAt, b.chosenAt), cmp.Compare(a.Address, b.Address))
}

// nextInTurn chooses by the smooth weighted round robin of nginx. A backend with weight 3
// beside one with weight 1 is not always chosen three times in a row.
func nextInTurn(candidates []*backendState) *backendState {
	slices.SortFunc(candidates, func(a, b *backendState) int { return cmp.Compare(a.Address, b.Address) })
	total := 0
	best := candidates[0]
	for _, b := range candidates {
		b.credit += max(b.Weight, 1)
		total += max(b.Weight, 1)
		if b.credit > best.credit {
			best = b
		}
	}
	best.credit -= total
	return best
}

// connected notes whether a chosen backend has accepted the connection. It reports
// whether this failure ejects the backend.
func (p *Pool) connected(now time.Time, b *backendState, ok bool) (ejected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok {
		b.refused, b.ejectedUntil = 0, time.Time{}
		return false
	}
	ejected = b.fail(now)
	p.drop(b)
	return ejected
}

// silent notes that a chosen backend neither accepts nor refuses a connection. Its
// machine may be dead, so the failure counts for all backends there. It reports whether
// the backend is ejected.
func (p *Pool) silent(now time.Time, b *backendState) (ejected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	host := hostOf(b.Address)
	for _, other := range p.backends {
		if other != b && hostOf(other.Address) == host {
			other.fail(now)
		}
	}
	ejected = b.fail(now)
	p.drop(b)
	return ejected
}

// hostOf returns the machine of an address.
func hostOf(address string) string { return address[:max(strings.LastIndexByte(address, ':'), 0)] }

// fail counts a failure, and reports whether it ejects the backend.
func (b *backendState) fail(now time.Time) (ejected bool) {
	b.refused++
	if b.refused >= maxRefused {
		ejected = !now.Before(b.ejectedUntil)
		b.ejectedUntil = now.Add(ejection)
	}
	return ejected
}

// release notes the end of a connection.
func (p *Pool) release(b *backendState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(b)
}

func (p *Pool) drop(b *backendState) {
	b.connections--
	if !b.isSet && b.connections == 0 && p.backends[b.Address] == b {
		delete(p.backends, b.Address)
	}
}
