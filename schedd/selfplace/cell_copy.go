package selfplace

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
	grantLifetime    = 10 * time.Second // as the leader does
	proposalLifetime = time.Second      // the leader has long looked at it
)

// partAttribute is the attribute of a machine in the copy that says how much this schedd
// prefers it: 1 in its own part, less elsewhere.
const partAttribute = "ScheddPart"

// CellCopy is one schedd's copy of the cell. It belongs to one goroutine.
type CellCopy struct {
	schedd      string
	part, parts int
	matcher     *match.Matcher
	machines    map[string]*match.Machine
	sorted      []*match.Machine // the same by name; nil: to be made anew
	synced      bool
	requests    map[uint64]*requestState
	granted     map[uint64]*pendingGrant   // by the number of the grant
	proposed    map[uint64][]*pendingGrant // by request
}

// pendingGrant is what was granted or proposed and does not show in its machine's ad yet.
type pendingGrant struct {
	match.PendingGrant
	machine        string
	units          int
	until          time.Time
	claimed        bool
	sequence       uint64 // claimed: of the first ad that shows it
	machineStarted int64  // of the machine when it was promised
}

// New returns an empty copy for the schedd of that name.
func New(schedd string) *CellCopy {
	return &CellCopy{
		schedd: schedd, parts: 1, matcher: match.NewMatcher(), machines: map[string]*match.Machine{},
		requests: map[uint64]*requestState{},
		granted:  map[uint64]*pendingGrant{}, proposed: map[uint64][]*pendingGrant{},
	}
}

// SetPolicy says which part of how many is this schedd's.
func (c *CellCopy) SetPolicy(part, parts int) {
	if parts = max(parts, 1); part == c.part && parts == c.parts {
		return
	}
	c.part, c.parts = part, parts
	for name, m := range c.machines {
		// the matcher reads what it has not seen
		c.machines[name] = match.NewMachine(name, m.Started, m.Sequence, c.setPreference(name, m.Ad))
	}
	c.sorted = nil
}

// setPreference notes in an ad how much its machine is preferred.
func (c *CellCopy) setPreference(name string, ad *classad.Ad) *classad.Ad {
	if nameHash("", name)%uint64(c.parts) == uint64(c.part) {
		ad.SetReal(partAttribute, 1)
	} else {
		ad.SetReal(partAttribute, float64(nameHash(c.schedd, name)%64)/128)
	}
	return ad
}

func nameHash(salt, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(salt))
	h.Write([]byte{0})
	h.Write([]byte(name))
	n := h.Sum64()
	return n ^ n>>29
}

// SetMachine takes in a machine's ad, which is the copy's from now on; nil: it is gone.
func (c *CellCopy) SetMachine(name string, started int64, sequence uint64, ad *classad.Ad) {
	if _, known := c.machines[name]; !known || ad == nil {
		c.sorted = nil
	}
	if ad == nil {
		delete(c.machines, name)
		return
	}
	ad.Delete(roost.AttrClaims) // a schedd displaces nobody
	m := match.NewMachine(name, started, sequence, c.setPreference(name, ad))
	c.machines[name] = m
	if at, found := slices.BinarySearchFunc(c.sorted, name, compareNames); found {
		c.sorted[at] = m
	}
	for id, p := range c.granted {
		if p.machine == name && p.isShown(m) {
			delete(c.granted, id)
		}
	}
}

func compareNames(m *match.Machine, name string) int { return strings.Compare(m.Name, name) }

func (p *pendingGrant) isShown(m *match.Machine) bool {
	return p.claimed && (m.Started > p.machineStarted || m.Started == p.machineStarted && m.Sequence >= p.sequence)
}

// SetSynced says that all machines are known: before that nothing is proposed.
func (c *CellCopy) SetSynced() { c.synced = true }

// LeaderGrant is what the leader has granted.
type LeaderGrant struct {
	ID, Request uint64
	Machine     string
	Resources   roost.Resources
	Waiting     bool
}

// Granted takes in a grant: what it takes is not free any more, and is not proposed any
// more either.
func (c *CellCopy) Granted(now time.Time, g LeaderGrant) {
	p := &pendingGrant{machine: g.Machine, units: 1, until: now.Add(grantLifetime)}
	p.PendingGrant = match.PendingGrant{Request: match.RequestKey{ID: g.Request}, Resources: g.Resources,
		Waiting: g.Waiting, Unit: -1}
	if r := c.requests[g.Request]; r != nil && r.class != nil {
		p.Class, p.MayReclaim = r.class.AppClass, !r.band.IsProd()
	}
	if m := c.machines[g.Machine]; m != nil {
		p.machineStarted = m.Started
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
func (c *CellCopy) Answered(now time.Time, id uint64, claimed, waiting bool, sequence uint64) {
	p := c.granted[id]
	if p == nil {
		return
	}
	if !claimed {
		delete(c.granted, id)
		if r := c.requests[p.Request.ID]; r != nil {
			r.avoid[p.machine] = now.Add(grantLifetime)
		}
		return
	}
	p.claimed, p.Waiting, p.sequence, p.until = true, waiting, sequence, now.Add(grantLifetime)
	if m := c.machines[p.machine]; m != nil && p.isShown(m) {
		delete(c.granted, id)
	}
}

// dropExpired forgets what nobody speaks of any more.
func (c *CellCopy) dropExpired(now time.Time) {
	for id, p := range c.granted {
		if !now.Before(p.until) {
			delete(c.granted, id)
		}
	}
	for id, list := range c.proposed {
		if list = slices.DeleteFunc(list, func(p *pendingGrant) bool {
			return p.units == 0 || !now.Before(p.until)
		}); len(list) == 0 {
			delete(c.proposed, id)
		} else {
			c.proposed[id] = list
		}
	}
}

// pendingResources is what is not free though the ads say so, by machine.
func (c *CellCopy) pendingResources() map[string][]match.PendingGrant {
	all := map[string][]match.PendingGrant{}
	add := func(p *pendingGrant) {
		for range p.units {
			all[p.machine] = append(all[p.machine], p.PendingGrant)
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

// isProposable reports whether requests of a class may be proposed for.
func isProposable(c *match.RequestClass) bool {
	return c != nil && c.AppClass == gpu.BatchClass && len(c.Limits) == 0 && !c.Exclusive
}
