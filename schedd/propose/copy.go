package propose

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
)

// How long things are remembered that nobody speaks of any more.
const (
	grantLife    = 10 * time.Second // as the leader does
	proposalLife = time.Second      // the leader has long looked at it
)

// partOf is the attribute of a machine in the copy that says how much this schedd prefers it: 1 in its own part, less elsewhere.
const partOf = "ScheddPart"

// Copy is one schedd's copy of the cell. It belongs to one goroutine.
type Copy struct {
	schedd      string
	part, parts int
	matcher     *match.Matcher
	machines    map[string]*match.Machine
	sorted      []*match.Machine // the same by name; nil: to be made anew
	synced      bool
	requests    map[uint64]*request
	granted     map[uint64]*promise   // by the number of the grant
	proposed    map[uint64][]*promise // by request
}

// promise is what was granted or proposed and does not show in its machine's ad yet.
type promise struct {
	match.Promise
	machine  string
	units    int
	until    time.Time
	claimed  bool
	sequence uint64 // claimed: of the first ad that shows it
	started  int64  // of the machine when it was promised
}

// New returns an empty copy for the schedd of that name.
func New(schedd string) *Copy {
	return &Copy{
		schedd: schedd, parts: 1, matcher: match.NewMatcher(), machines: map[string]*match.Machine{}, requests: map[uint64]*request{},
		granted: map[uint64]*promise{}, proposed: map[uint64][]*promise{},
	}
}

// Rule says which part of how many is this schedd's.
func (c *Copy) Rule(part, parts int) {
	if parts = max(parts, 1); part == c.part && parts == c.parts {
		return
	}
	c.part, c.parts = part, parts
	for name, m := range c.machines {
		c.machines[name] = match.NewMachine(name, m.Started, m.Sequence, c.mark(name, m.Ad)) // the matcher reads what it has not seen
	}
	c.sorted = nil
}

// mark notes in an ad how much its machine is preferred.
func (c *Copy) mark(name string, ad *classad.Ad) *classad.Ad {
	if hash("", name)%uint64(c.parts) == uint64(c.part) {
		ad.SetReal(partOf, 1)
	} else {
		ad.SetReal(partOf, float64(hash(c.schedd, name)%64)/128)
	}
	return ad
}

func hash(salt, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(salt))
	h.Write([]byte{0})
	h.Write([]byte(name))
	n := h.Sum64()
	return n ^ n>>29
}

// Machine takes in a machine's ad, which is the copy's from now on; nil: it is gone.
func (c *Copy) Machine(name string, started int64, sequence uint64, ad *classad.Ad) {
	if _, known := c.machines[name]; !known || ad == nil {
		c.sorted = nil
	}
	if ad == nil {
		delete(c.machines, name)
		return
	}
	ad.Delete(roost.AttrClaims) // a schedd displaces nobody
	m := match.NewMachine(name, started, sequence, c.mark(name, ad))
	c.machines[name] = m
	if at, found := slices.BinarySearchFunc(c.sorted, name, byName); found {
		c.sorted[at] = m
	}
	for id, p := range c.granted {
		if p.machine == name && p.shown(m) {
			delete(c.granted, id)
		}
	}
}

func byName(m *match.Machine, name string) int { return strings.Compare(m.Name, name) }

func (p *promise) shown(m *match.Machine) bool {
	return p.claimed && (m.Started > p.started || m.Started == p.started && m.Sequence >= p.sequence)
}

// Synced says that all machines are known: before that nothing is proposed.
func (c *Copy) Synced() { c.synced = true }

// Grant is what the leader has granted.
type Grant struct {
	ID, Request uint64
	Machine     string
	Resources   roost.Resources
	Waiting     bool
}

// Granted takes in a grant: what it takes is not free any more, and is not proposed any more either.
func (c *Copy) Granted(now time.Time, g Grant) {
	p := &promise{machine: g.Machine, units: 1, until: now.Add(grantLife)}
	p.Promise = match.Promise{Request: match.Key{ID: g.Request}, Resources: g.Resources, Waiting: g.Waiting, Unit: -1}
	if r := c.requests[g.Request]; r != nil && r.class != nil {
		p.Class, p.NonProd = r.class.App, !r.band.Prod()
	}
	if m := c.machines[g.Machine]; m != nil {
		p.started = m.Started
	}
	c.granted[g.ID] = p
	for _, one := range c.proposed[g.Request] {
		if one.machine == g.Machine && one.Waiting == g.Waiting && one.units > 0 {
			one.units--
			break
		}
	}
}

// Answered takes in what became of a grant.
func (c *Copy) Answered(now time.Time, id uint64, claimed, waiting bool, sequence uint64) {
	p := c.granted[id]
	if p == nil {
		return
	}
	if !claimed {
		delete(c.granted, id)
		if r := c.requests[p.Request.ID]; r != nil {
			r.avoid[p.machine] = now.Add(grantLife)
		}
		return
	}
	p.claimed, p.Waiting, p.sequence, p.until = true, waiting, sequence, now.Add(grantLife)
	if m := c.machines[p.machine]; m != nil && p.shown(m) {
		delete(c.granted, id)
	}
}

// lapse forgets what nobody speaks of any more.
func (c *Copy) lapse(now time.Time) {
	for id, p := range c.granted {
		if !now.Before(p.until) {
			delete(c.granted, id)
		}
	}
	for id, list := range c.proposed {
		if list = slices.DeleteFunc(list, func(p *promise) bool { return p.units == 0 || !now.Before(p.until) }); len(list) == 0 {
			delete(c.proposed, id)
		} else {
			c.proposed[id] = list
		}
	}
}

// pending is what is not free though the ads say so, by machine.
func (c *Copy) pending() map[string][]match.Promise {
	all := map[string][]match.Promise{}
	add := func(p *promise) {
		for range p.units {
			all[p.machine] = append(all[p.machine], p.Promise)
		}
	}
	for _, id := range sortedKeys(c.granted) {
		add(c.granted[id])
	}
	for _, id := range sortedKeys(c.proposed) {
		for _, p := range c.proposed[id] {
			add(p)
		}
	}
	return all
}

// plain reports whether requests of a class may be proposed for.
func plain(c *match.Class) bool {
	return c != nil && c.App == gpu.Batch && len(c.Limits) == 0 && !c.Alone
}
