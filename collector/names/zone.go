package names

import (
	"container/heap"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
)

// Config configures a zone.
type Config struct {
	Domain string // "roost.internal"
	Cell   string // label of the pool below Domain
}

// Bounds on a zone.
const (
	maxTasks = 200_000
	// how long a task without an endpoint is remembered: its name exists, and an older
	// attempt cannot get it
	rememberTask = 5 * time.Minute
	// DefaultLease is how long endpoints exist without a message about their machine.
	// The schedds break the session of a startd after the same silence.
	DefaultLease = roost.SilentAfter
	maxLease     = time.Minute
)

// Zone holds the endpoints of the pool's services. It is not safe for concurrent use. The
// endpoints that it returns never change.
type Zone struct {
	suffix   string // of all names: ".cell.domain." in lower case
	machines map[string]*machine
	services map[serviceKey]*service
	tasks    map[TaskKey]*task
	leases   leaseHeap
	ended    []endedTask // tasks without an endpoint, oldest first
	version  uint64      // of the last change
	watches  map[*Watch]bool
	woken    []*Watch
	refused  int // endpoints that were refused, in total
}

type serviceKey struct{ owner, name string }

// service is what has one name: the tasks of all jobs of an owner with that name.
type service struct {
	key     serviceKey
	tasks   map[TaskKey]*task
	byIndex map[uint32][]*task
	ready   [2][]*task // IPv4 and IPv6, in no order
	watches []*Watch
}

// task is a task of a service. It has a name when shown is set.
type task struct {
	key      TaskKey
	service  *service
	claims   []claimedEndpoint
	shown    *Endpoint // endpoint of the newest attempt; nil: it has ended
	highest  uint32    // the newest attempt that ever had an endpoint here
	changed  uint64    // version of the last change of shown
	readyAt  int       // position in service.ready; -1: not ready
	endCount int       // of its entries in Zone.ended, only the last one counts
}

// claimedEndpoint is an endpoint as a machine claims it.
type claimedEndpoint struct {
	machine  *machine
	endpoint *Endpoint
}

// endedTask is an entry in the list of tasks without an endpoint.
type endedTask struct {
	task  *task
	count int
	until time.Time
}

// New returns an empty zone.
func New(c Config) *Zone {
	return &Zone{
		suffix:   strings.ToLower("." + c.Cell + "." + strings.Trim(c.Domain, ".") + "."),
		machines: map[string]*machine{}, services: map[serviceKey]*service{}, tasks: map[TaskKey]*task{},
		watches: map[*Watch]bool{},
	}
}

// Version returns the version of the last change.
func (z *Zone) Version() uint64 { return z.version }

// Refused returns how many endpoints of machines were refused so far.
func (z *Zone) Refused() int { return z.refused }

// Origin returns the name of the zone, with a final dot.
func (z *Zone) Origin() string { return z.suffix[1:] }

// MachineAd is the ad of a machine.
type MachineAd struct {
	Name      string // of the ad
	Node      string // in the certificate with which the ad came
	Text      string
	Addresses []netip.Addr // that endpoints of the machine may have; the first is the default
	Local     bool         // the machine is the collector's host: loopback addresses are right
	Lease     time.Duration
	Check     CheckRight // nil: rights are not checked, because the ad comes from this host
}

// MachineReading is what was read of the ad of a machine.
type MachineReading struct {
	reader  adReader
	refused int
	err     error
}

// ReadMachine reads the ad of a machine and checks its endpoints, which changes nothing
// yet. It may run beside lookups, but not beside changes of machines.
func (z *Zone) ReadMachine(now time.Time, ad MachineAd) MachineReading {
	n := MachineReading{reader: adReader{ad: ad, now: now}}
	r := &n.reader
	if m := z.machines[ad.Name]; m != nil {
		r.old = m.endpoints
		if m.rightsEnd > 0 && now.Unix() >= m.rightsEnd { // SetMachine drops those that have expired first
			r.old = slices.DeleteFunc(slices.Clone(r.old), func(e endpointText) bool {
				return e.endpoint.proof.expires <= now.Unix()
			})
		}
		r.reparse = m.node != ad.Node || m.checked != (ad.Check != nil) || !slices.Equal(m.addresses, ad.Addresses)
	}
	r.used = make([]bool, len(r.old))
	elements, ok := splitEndpoints(ad.Text)
	if !ok {
		n.refused++
		n.err = fmt.Errorf("ad of machine %s: %s: %w: it is no list of up to %d nested ads", ad.Name,
			roost.AttrEndpoints, roost.Invalid, maxEndpoints)
	}
	for i, text := range elements {
		if problem := r.read(i, text); problem != nil {
			n.refused++
			n.err = fmt.Errorf("ad of machine %s: an endpoint: %w", ad.Name, problem)
		}
	}
	return n
}

// SetMachine replaces the ad of a machine by what was just read of it. Its error tells
// about one of the endpoints that were refused; the others are in effect.
func (z *Zone) SetMachine(now time.Time, n MachineReading) error {
	ad := n.reader.ad
	z.refused += n.refused
	z.RenewLease(now, ad.Name, ad.Lease)
	m := z.machines[ad.Name]
	if m == nil {
		if len(n.reader.next) == 0 {
			return n.err
		}
		m = &machine{name: ad.Name, heapIndex: -1}
		z.machines[ad.Name] = m
		z.RenewLease(now, ad.Name, ad.Lease)
	}
	m.addresses, m.node = ad.Addresses, ad.Node
	z.replaceEndpoints(now, m, n.reader)
	m.setRightsEnd(ad.Check != nil)
	if len(m.endpoints) == 0 {
		z.forgetMachine(m)
	}
	return n.err
}

// checkAddress checks that an endpoint is on the machine that claims it. A machine could
// forward connections to anywhere, but it cannot lead clients to their own host or to an
// address of another machine.
func checkAddress(a netip.Addr, ad MachineAd) error {
	switch {
	case ad.Local && a.IsLoopback():
		return nil
	case !a.IsValid(), a.IsLoopback(), a.IsUnspecified(), a.IsMulticast(), a.IsLinkLocalUnicast():
		return fmt.Errorf("address %v: %w: it leads nobody to the machine", a, roost.PermissionDenied)
	case !ad.Local && !slices.Contains(ad.Addresses, a):
		return fmt.Errorf("address %v: %w: the ad came from %v", a, roost.PermissionDenied, ad.Addresses)
	}
	return nil
}

// replaceEndpoints makes what r has read the endpoints of a machine. It adds before it
// removes, so that a change of state is one change of the task.
func (z *Zone) replaceEndpoints(now time.Time, m *machine, r adReader) {
	m.endpoints = r.next
	full := false
	for _, e := range r.added {
		if !z.addClaim(m, e) {
			z.refused++
			full = true
		}
	}
	for i, old := range r.old {
		if !r.used[i] {
			z.removeClaim(now, m, old.endpoint)
		}
	}
	if full {
		m.endpoints = slices.DeleteFunc(m.endpoints, func(e endpointText) bool {
			return z.tasks[e.endpoint.TaskKey] == nil
		})
	}
}

// addClaim adds an endpoint of a machine. It returns false if the zone is full.
func (z *Zone) addClaim(m *machine, e *Endpoint) bool {
	t := z.tasks[e.TaskKey]
	if t == nil {
		if len(z.tasks) >= maxTasks && !z.forgetOldest() {
			return false
		}
		t = z.newTask(e.TaskKey)
	}
	t.claims = append(t.claims, claimedEndpoint{m, e})
	t.highest = max(t.highest, e.Attempt)
	z.selectShown(t)
	return true
}

// removeClaim removes an endpoint of a machine.
func (z *Zone) removeClaim(now time.Time, m *machine, e *Endpoint) {
	t := z.tasks[e.TaskKey]
	if t == nil {
		return
	}
	t.claims = slices.DeleteFunc(t.claims, func(c claimedEndpoint) bool { return c.machine == m && c.endpoint == e })
	z.selectShown(t)
	if len(t.claims) == 0 {
		t.endCount++
		z.ended = append(z.ended, endedTask{t, t.endCount, now.Add(rememberTask)})
	}
}

func (z *Zone) newTask(key TaskKey) *task {
	k := serviceKey{key.Owner, key.Name}
	s := z.services[k]
	if s == nil {
		s = &service{key: k, tasks: map[TaskKey]*task{}, byIndex: map[uint32][]*task{}}
		z.services[k] = s
		for w := range z.watches {
			if w.matchesService(k) {
				s.watches = append(s.watches, w)
			}
		}
	}
	t := &task{key: key, service: s, readyAt: -1}
	s.tasks[key], z.tasks[key] = t, t
	s.byIndex[key.Index] = append(s.byIndex[key.Index], t)
	return t
}

// selectShown selects the endpoint of the newest attempt, and tells watches about a
// change.
func (z *Zone) selectShown(t *task) {
	var best *Endpoint
	for _, c := range t.claims {
		isNewest := c.endpoint.Attempt == t.highest || mutant.Active(mutant.OldAttemptNamed)
		if isNewest && (best == nil || best.State == Lost) {
			best = c.endpoint
			if c.machine.silent {
				lost := *best
				lost.State = Lost
				best = &lost
			}
		}
	}
	if sameEndpoint(t.shown, best) {
		return
	}
	t.service.removeReady(t)
	t.shown = best
	if best != nil && best.State == Ready {
		t.service.addReady(t)
	}
	z.version++
	t.changed = z.version
	for _, w := range t.service.watches {
		z.notify(w, t.key)
	}
}

func sameEndpoint(a, b *Endpoint) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.Attempt == b.Attempt && a.Revision == b.Revision && a.State == b.State && a.Weight == b.Weight &&
		a.Address == b.Address && a.Node == b.Node && slices.Equal(a.Ports, b.Ports)
}

func addressFamily(e *Endpoint) int {
	if e.Address.Is4() {
		return 0
	}
	return 1
}

func (s *service) addReady(t *task) {
	list := &s.ready[addressFamily(t.shown)]
	t.readyAt = len(*list)
	*list = append(*list, t)
}

func (s *service) removeReady(t *task) {
	if t.readyAt < 0 {
		return
	}
	list := &s.ready[addressFamily(t.shown)]
	last := (*list)[len(*list)-1]
	(*list)[t.readyAt], last.readyAt = last, t.readyAt
	(*list)[len(*list)-1] = nil
	*list = (*list)[:len(*list)-1]
	t.readyAt = -1
}

// Expire makes machines silent whose leases have expired, and forgets tasks that ended
// long ago.
func (z *Zone) Expire(now time.Time) {
	for len(z.leases) > 0 && !now.Before(z.leases[0].expires) {
		m := z.leases[0]
		heap.Pop(&z.leases)
		if mutant.Active(mutant.SilentNamed) {
			continue
		}
		z.setSilent(m, true)
	}
	for len(z.ended) > 0 && !now.Before(z.ended[0].until) {
		z.forgetOldest()
	}
}

// NextWake returns when Expire has something to do. ok is false if that is never.
func (z *Zone) NextWake() (at time.Time, ok bool) {
	if len(z.leases) > 0 {
		at, ok = z.leases[0].expires, true
	}
	if len(z.ended) > 0 && (!ok || z.ended[0].until.Before(at)) {
		at, ok = z.ended[0].until, true
	}
	return at, ok
}

// forgetOldest forgets the task that ended first. It returns false if there is none.
func (z *Zone) forgetOldest() bool {
	for len(z.ended) > 0 {
		e := z.ended[0]
		z.ended[0] = endedTask{}
		z.ended = z.ended[1:]
		if e.count == e.task.endCount && len(e.task.claims) == 0 {
			z.forgetTask(e.task)
			return true
		}
	}
	return false
}

func (z *Zone) forgetTask(t *task) {
	s := t.service
	delete(z.tasks, t.key)
	delete(s.tasks, t.key)
	same := slices.DeleteFunc(s.byIndex[t.key.Index], func(o *task) bool { return o == t })
	if s.byIndex[t.key.Index] = same; len(same) == 0 {
		delete(s.byIndex, t.key.Index)
	}
	if len(s.tasks) == 0 {
		delete(z.services, s.key)
	}
}
