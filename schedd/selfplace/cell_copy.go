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

// How long grants and proposals are remembered without further reports.
const (
	grantLifetime    = 10 * time.Second // as the leader does
	proposalLifetime = time.Second      // the leader has processed the proposal by then
)

// partAttribute is a machine attribute in the copy that states how much this schedd
// prefers the machine. It is 1 in the schedd's own part, and less elsewhere.
const partAttribute = "ScheddPart"

// CellCopy is one schedd's copy of the cell. One goroutine owns it.
type CellCopy struct {
	schedd      string
	part, parts int
	matcher     *match.Matcher
	machines    map[string]*match.Machine
	sorted      []*match.Machine // the machines by name; nil: to be rebuilt
	synced      bool
	requests    map[uint64]*requestState
	granted     map[uint64]*pendingGrant   // by grant ID
	proposed    map[uint64][]*pendingGrant // by request ID
}

// pendingGrant is a grant or a proposal that the machine's ad does not show yet.
type pendingGrant struct {
	match.PendingGrant
	machine        string
	units          int
	until          time.Time
	claimed        bool
	sequence       uint64 // with claimed: sequence number of the first ad that shows the claim
	machineStarted int64  // start time of the startd when the grant was made
}

// New returns an empty copy for the schedd of that name.
func New(schedd string) *CellCopy {
	return &CellCopy{
		schedd: schedd, parts: 1, matcher: match.NewMatcher(), machines: map[string]*match.Machine{},
		requests: map[uint64]*requestState{},
		granted:  map[uint64]*pendingGrant{}, proposed: map[uint64][]*pendingGrant{},
	}
}

// SetPolicy sets the schedd's part and the number of parts.
func (c *CellCopy) SetPolicy(part, parts int) {
	if parts = max(parts, 1); part == c.part && parts == c.parts {
		return
	}
	c.part, c.parts = part, parts
	for name, m := range c.machines {
		// the matcher reads only machine objects that it has not seen
		c.machines[name] = match.NewMachine(name, m.Started, m.Sequence, c.setPreference(name, m.Ad))
	}
	c.sorted = nil
}

// setPreference writes the preference for a machine into its ad.
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

// SetMachine stores a machine's ad and takes ownership of it. A nil ad removes the
// machine.
func (c *CellCopy) SetMachine(name string, started int64, sequence uint64, ad *classad.Ad) {
	if _, known := c.machines[name]; !known || ad == nil {
		c.sorted = nil
	}
	if ad == nil {
		delete(c.machines, name)
		return
	}
	ad.Delete(roost.AttrClaims) // a schedd evicts nothing
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

// SetSynced marks the copy as complete. The schedd proposes nothing before.
func (c *CellCopy) SetSynced() { c.synced = true }

// LeaderGrant is a grant of the leader.
type LeaderGrant struct {
	ID, Request uint64
	Machine     string
	Resources   roost.Resources
	Waiting     bool
}

// Granted records a grant. It reserves the resources and replaces the matching proposal.
func (c *CellCopy) Granted(now time.Time, g LeaderGrant) {
	p := &pendingGrant{machine: g.Machine, units: 1, until: now.Add(grantLifetime)}
	p.PendingGrant = match.PendingGrant{Request: match.RequestKey{ID: g.Request}, Resources: g.Resources,
		Waiting: g.Waiting, Unit: -1}
	if r := c.requests[g.Request]; r != nil && r.class != nil {
		p.Class, p.MayReclaim, p.Ports = r.class.AppClass, !r.band.IsProd(), r.class.StaticPorts
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

// Answered records whether the startd accepted the claim of a grant.
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

// dropExpired removes the grants and proposals that have expired.
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

// pendingResources returns the resources that are in use although the ads show them as
// free, by machine.
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

// isProposable reports whether the schedd may propose for requests of a class.
func isProposable(c *match.RequestClass) bool {
	return c != nil && c.AppClass == gpu.BatchClass && len(c.Limits) == 0 && !c.Exclusive
}
