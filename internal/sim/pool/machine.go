package pool

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/lend"
	"github.com/roost-batch/roost/startd/slot"
)

// machineNode is a machine: the production books of its startd, the loop around them, and its starters, which outlive it.
type machineNode struct {
	*node
	of     *Machine
	units  []gpu.Unit
	given  slot.ClaimID // the last claim from before the beginning
	lied   int          // attempts that ended with an output that nobody had asked for
	failed int          // attempts that it was to begin

	// What is on its disk, or lives beside the startd.
	hands      map[slot.ClaimID]*hand
	generation uint64
	leased     map[slot.ClaimID]bool // as the observer was told
	offered    bool                  // the observer was told what it lends
	offers     bool                  // everything, and not nothing
	missed     bool                  // the observer was told that nothing is heard of the guard
	guard      *guard                // nil: it is nobody's

	// The startd's own.
	core     *slot.Core
	exits    map[slot.ClaimID]*wire.Exited
	programs map[slot.ClaimID]*wire.Activate
	shown    map[slot.ClaimID]uint64 // the sequence of the first ad that shows the claim
	sessions map[uint64]*stream
	last     uint64 // session
	links    []adLink
	key      []byte
	ad       adstore.Update
	version  uint64 // of the books that the ad shows
	restated time.Duration
	running  int
	wake     alarm
	minor    alarm
	lender   *lend.Lender // nil: it is nobody's
	heard    uint64       // the number of the guard's signs that were heard last
	awaited  uint64       // counts the times that are given to the guard to be heard
}

// adLink keeps a collector told (package internal/advertise): at most one update is on its way.
type adLink struct {
	to      *node
	on      *stream
	sent    uint64
	waiting bool
	began   time.Duration
	retry   backoff
	again   alarm
	renew   alarm
}

func newMachine(p *Pool, of *Machine) (*machineNode, error) {
	m := &machineNode{of: of, hands: map[slot.ClaimID]*hand{}, leased: map[slot.ClaimID]bool{}}
	if of.Owner != nil {
		m.guard = &guard{m: m}
	}
	if of.Name == "" {
		of.Name = fmt.Sprintf("machine%d", len(p.machines))
	}
	if p.byName[of.Name] != nil {
		return nil, fmt.Errorf("machine %s: %w: there are two of that name", of.Name, roost.Conflict)
	}
	if m.units = of.Units; m.units != nil {
		m.node = p.newNode(of.Name, m)
		return m, nil
	}
	t := gpu.Topology{CPU: of.Resources.CPU, Memory: of.Resources.Memory, Devices: of.Devices}
	for i := range int((of.Resources.CPU + 999) / 1000) {
		t.Cores = append(t.Cores, gpu.Core{ID: i})
	}
	var err error
	if m.units, err = gpu.Cut(t, of.Layout); err != nil {
		return nil, fmt.Errorf("machine %s: %w", of.Name, err)
	}
	m.node = p.newNode(of.Name, m)
	return m, nil
}

// start is what startd.open and its loop's beginning do.
func (m *machineNode) start() {
	m.generation++
	m.exits, m.programs, m.shown = map[slot.ClaimID]*wire.Exited{}, map[slot.ClaimID]*wire.Activate{}, map[slot.ClaimID]uint64{}
	m.sessions, m.last, m.version, m.running = map[uint64]*stream{}, 0, 0, 0
	m.wake, m.minor = alarm{}, alarm{}
	m.key = make([]byte, 32)
	for i := range m.key {
		m.key[i] = byte(m.p.rand.Uint64())
	}
	m.core = slot.New(slot.Options{
		Units: m.units, Disk: m.of.Resources.Disk, Ad: m.say(), FirstID: slot.ClaimID(m.generation<<generationBits | 1), KeepExits: keepExits,
	})
	m.ad = adstore.Update{Type: "Machine", Name: m.name, Started: m.now().UnixNano(), Lease: adLease}
	m.follow()
	m.adopt()
	m.links = make([]adLink, len(m.p.managers))
	for i := range m.links {
		m.links[i].to = m.p.managers[i].node
	}
	m.publish(true)
	m.act()
	if m.generation == 1 {
		m.carried()
	}
}

// What package startd has them.
const (
	generationBits = 32
	keepExits      = 24 * time.Hour
	minorEvery     = 5 * time.Second
	matchSteps     = 100_000
)

func (m *machineNode) stop() {
	m.core, m.sessions, m.links, m.lender = nil, nil, nil, nil
	if m.guard != nil {
		m.guard.parted()
	}
}

// say is what the machine says of itself that does not depend on claims.
func (m *machineNode) say() *classad.Ad {
	ad := classad.New()
	if m.of.Ad != nil {
		ad = m.of.Ad.Copy()
	}
	ad.SetString(roost.AttrMyType, "Machine")
	ad.SetString(roost.AttrName, m.name)
	ad.SetString(roost.AttrMachine, m.name)
	ad.SetString(roost.AttrMyAddress, m.name)
	ad.SetString(roost.AttrArch, "X86_64")
	ad.SetString(roost.AttrOpSys, "LINUX")
	ad.SetString(roost.AttrFileSystemDomain, domain)
	ad.SetString(roost.AttrBootID, strconv.Itoa(int(m.host)))
	ad.SetInt(roost.AttrDaemonStart, m.now().Unix())
	for _, e := range [][2]string{{roost.AttrStart, "true"}, {roost.AttrRank, "0"}, {roost.AttrRequirements, roost.AttrStart}} {
		if _, ok := ad.Lookup(e[0]); ok {
			continue
		}
		if err := ad.SetExpr(e[0], e[1]); err != nil {
			panic(err)
		}
	}
	return ad
}

// act does what the books say, and sees to it that they are asked again in time.
func (m *machineNode) act() {
	life := m.life
	next := slot.Instant(math.MaxInt64)
	for again := true; again; again = m.lender != nil && m.lender.Stale() {
		next = math.MaxInt64
		if m.lender != nil {
			next = m.attend()
		}
		effects, wake := m.core.Todo(m.boot())
		next = min(next, wake)
		if m.core.Version() != m.version || m.lender != nil && m.lender.News() {
			m.publish(true)
		}
		for _, e := range effects {
			if m.perform(e); m.life != life {
				return
			}
		}
	}
	m.observe()
	if next != math.MaxInt64 {
		m.alarm(&m.wake, next+m.bootedAt)
	}
	if !m.p.cfg.Quiet || m.core.Running() != m.running || m.core.Untold() {
		m.alarm(&m.minor, m.p.k.Now()+minorEvery)
	}
}

// publish advertises the machine as it stands. A minor change is worth it only when something differs.
func (m *machineNode) publish(major bool) {
	running := m.core.Running()
	old := m.p.k.Now()-m.restated >= restate && !m.p.cfg.Quiet
	if !major && running == m.running && !old && !m.core.ClaimsNews(m.boot(), unsaved) && !m.core.RoomNews() {
		return
	}
	m.core.Observe(0)
	ad := m.core.Ad()
	if m.lender != nil {
		m.lender.Describe(ad)
	}
	m.core.DescribeClaims(ad, slot.Clock{Now: m.boot(), Wall: m.now()}, unsaved)
	m.ad.Sequence++
	ad.SetInt(roost.AttrUpdateSequence, int64(m.ad.Sequence))
	m.ad.Ad = ad.String()
	if !m.p.cfg.Spelt {
		m.ad.Read = ad
	}
	m.ad.Private = map[string]string{"GrantKey": hex.EncodeToString(m.key), "GrantNames": "schedd", "Clock": strconv.FormatInt(int64(m.boot()), 10)}
	m.version, m.restated, m.running = m.core.Version(), m.p.k.Now(), running
	for _, id := range slices.Sorted(maps.Keys(m.hands)) {
		if m.shown[id] == 0 {
			m.shown[id] = m.ad.Sequence
		}
	}
	for i := range m.links {
		m.advertise(&m.links[i])
	}
}

// unsaved is what is known of checkpoints: none are taken.
func unsaved(*slot.Claim) slot.Saved { return slot.Saved{} }

// advertise tells a collector the ad, if it does not have it, and has answered what it was told before.
func (m *machineNode) advertise(l *adLink) {
	if l.waiting || l.sent >= m.ad.Sequence {
		return
	}
	update := &adUpdate{m.ad}
	l.sent, l.waiting = m.ad.Sequence, true
	if l.on == nil {
		l.began = m.p.k.Now()
		l.on = m.p.open(m.node, l.to, ofMachines, update, l)
	} else {
		m.p.send(l.on, 0, update)
	}
	if !m.p.cfg.Quiet {
		m.alarm(&l.renew, m.p.k.Now()+adLease/3)
	}
}

// renewAd has the lease of the ad start again.
func (m *machineNode) renewAd(l *adLink) {
	if !l.waiting && l.on != nil {
		update := &adUpdate{m.ad}
		update.Ad, update.Read, update.Private = "", nil, nil
		l.waiting = true
		m.p.send(l.on, 0, update)
	}
	m.alarm(&l.renew, m.p.k.Now()+adLease/3)
}

// observe tells which claims have their resources.
func (m *machineNode) observe() {
	if m.p.cfg.Observe == nil {
		return
	}
	m.offer()
	for _, id := range slices.Sorted(maps.Keys(m.leased)) {
		if c, ok := m.core.Claim(id); !ok || !c.Holds() {
			delete(m.leased, id)
			m.p.see(audit.Seen{What: audit.Freed, Node: m.name, Claim: uint64(id)})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.hands)) {
		if c, ok := m.core.Claim(id); ok && c.Holds() && !m.leased[id] {
			m.leased[id] = true
			m.p.see(audit.Seen{What: audit.Leased, Node: m.name, Claim: uint64(id), Resources: c.Resources, Until: c.Lease + m.bootedAt})
		}
	}
}

func (m *machineNode) alarmed(a *alarm) {
	switch a {
	case &m.wake:
	case &m.minor:
		m.publish(false)
	default:
		for i := range m.links {
			switch l := &m.links[i]; a {
			case &l.again:
				m.advertise(l)
			case &l.renew:
				m.renewAd(l)
			}
		}
		return
	}
	m.act()
}

func (m *machineNode) disk(uint64)         {}
func (m *machineNode) datagram(*node, any) {}
func (m *machineNode) check()              { m.core.Check() }
