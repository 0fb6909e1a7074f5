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
	"github.com/roost-batch/roost/startd/desktop"
	"github.com/roost-batch/roost/startd/slot"
)

// machineNode is a machine: the production claim table of its startd and the simulated
// loop around it. Its starters outlive the startd.
type machineNode struct {
	*hostNode
	config             *MachineConfig
	units              []gpu.ResourceUnit
	initialClaim       slot.ClaimID // last claim of the initial state
	unrequestedOutputs int          // number of attempts that ended with an unrequested output
	failedAttempts     int          // number of attempts that failed to begin

	// State on the machine's disk, or of processes beside the startd.
	claimRunners      map[slot.ClaimID]*claimRunner
	generation        uint64
	leased            map[slot.ClaimID]roost.Resources // claims that were reported to the observer
	offered           bool                             // the observer knows what the machine offers
	offersAll         bool                             // as the observer knows it: offers everything, not nothing
	guardMissReported bool                             // the silence of the guard was reported to the observer
	guard             *guardProcess                    // nil: the machine has no owner

	// State of the startd.
	core             *slot.ClaimTable
	exits            map[slot.ClaimID]*wire.Exited
	programs         map[slot.ClaimID]*wire.Activate
	shown            map[slot.ClaimID]uint64 // sequence of the first ad that shows the claim
	sessions         map[uint64]*daemonStream
	lastSession      uint64 // number of the last session
	links            []adLink
	key              []byte
	ad               adstore.AdUpdate
	version          uint64 // version of the claim table in the ad
	restated         time.Duration
	running          int
	endpoints        string // the tasks of services in the ad
	wake             daemonTimer
	minor            daemonTimer
	enforcer         *desktop.PolicyEnforcer // nil: the machine has no owner
	lastObservations uint64                  // number of the last observations received from the guard
	guardTimeouts    uint64                  // counts restarts of the guard timeout
}

// adLink sends ads to a collector (package internal/adclient), at most one update at a
// time.
type adLink struct {
	to         *hostNode
	stream     *daemonStream
	sent       uint64
	waiting    bool
	began      time.Duration
	retry      reconnectBackoff
	retryTimer daemonTimer
	renewTimer daemonTimer
}

func newMachine(p *Pool, of *MachineConfig) (*machineNode, error) {
	m := &machineNode{config: of, claimRunners: map[slot.ClaimID]*claimRunner{},
		leased: map[slot.ClaimID]roost.Resources{}}
	if of.OwnerPolicy != nil {
		m.guard = &guardProcess{machine: m}
	}
	if of.Name == "" {
		of.Name = fmt.Sprintf("machine%d", len(p.machines))
	}
	if p.byName[of.Name] != nil {
		return nil, fmt.Errorf("machine %s: %w: there are two of that name", of.Name, roost.Conflict)
	}
	if m.units = of.Units; m.units != nil {
		m.hostNode = p.newNode(of.Name, m)
		return m, nil
	}
	t := gpu.MachineTopology{CPU: of.Resources.CPU, Memory: of.Resources.Memory, Devices: of.Devices}
	for i := range int((of.Resources.CPU + 999) / 1000) {
		t.Cores = append(t.Cores, gpu.CPUCore{ID: i})
	}
	var err error
	if m.units, err = gpu.CutUnits(t, of.Layout); err != nil {
		return nil, fmt.Errorf("machine %s: %w", of.Name, err)
	}
	m.hostNode = p.newNode(of.Name, m)
	return m, nil
}

// start does what startd does when it starts.
func (m *machineNode) start() {
	m.generation++
	m.exits, m.programs, m.shown = map[slot.ClaimID]*wire.Exited{}, map[slot.ClaimID]*wire.Activate{},
		map[slot.ClaimID]uint64{}
	m.sessions, m.lastSession, m.version, m.running = map[uint64]*daemonStream{}, 0, 0, 0
	m.wake, m.minor = daemonTimer{}, daemonTimer{}
	m.key = make([]byte, 32)
	for i := range m.key {
		m.key[i] = byte(m.pool.rand.Uint64())
	}
	m.core = slot.New(slot.TableOptions{
		Units: m.units, Disk: m.config.Resources.Disk, Ad: m.baseAd(),
		FirstID: slot.ClaimID(m.generation<<generationBits | 1), ExitRetention: maxExits,
	})
	m.ad = adstore.AdUpdate{Type: "Machine", Name: m.name, Started: m.wallTime().UnixNano(), Lease: adLease}
	m.followOwner()
	m.adopt()
	m.links = make([]adLink, len(m.pool.managers))
	for i := range m.links {
		m.links[i].to = m.pool.managers[i].hostNode
	}
	m.advertiseAll(true)
	m.runEffects()
	if m.generation == 1 {
		m.reportInitial()
	}
}

// Constants of package startd.
const (
	generationBits      = 32
	maxExits            = 24 * time.Hour
	minorUpdateInterval = 5 * time.Second
	maxPolicySteps      = 100_000
)

func (m *machineNode) stop() {
	m.core, m.sessions, m.links, m.enforcer = nil, nil, nil, nil
	if m.guard != nil {
		m.guard.startdGone()
	}
}

// baseAd returns the part of the machine ad that does not depend on claims.
func (m *machineNode) baseAd() *classad.Ad {
	ad := classad.New()
	if m.config.Ad != nil {
		ad = m.config.Ad.Copy()
	}
	ad.SetString(roost.AttrMyType, "Machine")
	ad.SetString(roost.AttrName, m.name)
	ad.SetString(roost.AttrMachine, m.name)
	ad.SetString(roost.AttrMyAddress, m.name)
	ad.SetString(roost.AttrArch, "X86_64")
	ad.SetString(roost.AttrOpSys, "LINUX")
	ad.SetString(roost.AttrFileSystemDomain, fileSystemDomain)
	ad.SetString(roost.AttrBootID, strconv.Itoa(int(m.hostLife)))
	ad.SetInt(roost.AttrDaemonStart, m.wallTime().Unix())
	for _, e := range [][2]string{{roost.AttrStart, "true"}, {roost.AttrRank, "0"},
		{roost.AttrRequirements, roost.AttrStart}} {
		if _, ok := ad.Lookup(e[0]); ok {
			continue
		}
		if err := ad.SetExpr(e[0], e[1]); err != nil {
			panic(err)
		}
	}
	return ad
}

// runEffects performs the effects of the claim table, and plans when to ask it again.
func (m *machineNode) runEffects() {
	life := m.daemonLife
	next := roost.BootTime(math.MaxInt64)
	for again := true; again; again = m.enforcer != nil && m.enforcer.ClaimsChanged() {
		next = math.MaxInt64
		if m.enforcer != nil {
			next = m.applyOwnerPolicy()
		}
		effects, wake := m.core.Todo(m.bootTime())
		next = min(next, wake)
		if m.core.Version() != m.version || m.enforcer != nil && m.enforcer.IsAdStale() ||
			m.endpointsChanged() {
			m.advertiseAll(true)
		}
		for _, e := range effects {
			if m.perform(e); m.daemonLife != life {
				return
			}
		}
	}
	m.reportLeases()
	if next != math.MaxInt64 {
		m.setTimer(&m.wake, next+m.bootedAt)
	}
	if !m.pool.cfg.OnlyOnChange || m.core.Running() != m.running || m.core.HasUnadvertised() {
		m.setTimer(&m.minor, m.pool.loop.Now()+minorUpdateInterval)
	}
}

// advertiseAll advertises the machine's present state. After a minor change it does so
// only if the ad would differ.
func (m *machineNode) advertiseAll(major bool) {
	running := m.core.Running()
	old := m.pool.loop.Now()-m.restated >= adRestateInterval && !m.pool.cfg.OnlyOnChange
	if !major && running == m.running && !old && !m.core.IsClaimsAdStale(m.bootTime(), noCheckpoint) &&
		!m.core.IsReclaimableAdStale() {
		return
	}
	m.core.SetLoad(0)
	ad := m.core.Ad()
	if m.enforcer != nil {
		m.enforcer.Describe(ad)
	}
	m.describeEndpoints(ad)
	m.core.DescribeClaims(ad, slot.ClockReading{Now: m.bootTime(), Wall: m.wallTime()}, noCheckpoint)
	m.ad.Sequence++
	ad.SetInt(roost.AttrUpdateSequence, int64(m.ad.Sequence))
	m.ad.Ad = ad.String()
	if !m.pool.cfg.AdsAsText {
		m.ad.ParsedAd = ad
	}
	m.ad.Private = map[string]string{"GrantKey": hex.EncodeToString(m.key), "GrantNames": "schedd",
		"Clock": strconv.FormatInt(int64(m.bootTime()), 10)}
	m.version, m.restated, m.running = m.core.Version(), m.pool.loop.Now(), running
	for _, id := range slices.Sorted(maps.Keys(m.claimRunners)) {
		if m.shown[id] == 0 {
			m.shown[id] = m.ad.Sequence
		}
	}
	for i := range m.links {
		m.advertise(&m.links[i])
	}
}

// noCheckpoint returns empty checkpoint information: no checkpoints are simulated.
func noCheckpoint(*slot.Claim) slot.CheckpointInfo { return slot.CheckpointInfo{} }

// advertise sends the ad to a collector that lacks it and has answered the previous
// update.
func (m *machineNode) advertise(l *adLink) {
	if l.waiting || l.sent >= m.ad.Sequence {
		return
	}
	update := &adUpdate{m.ad}
	l.sent, l.waiting = m.ad.Sequence, true
	if l.stream == nil {
		l.began = m.pool.loop.Now()
		l.stream = m.pool.network().openStream(m.hostNode, l.to, machineStream, update, l)
	} else {
		m.pool.network().sendOn(l.stream, 0, update)
	}
	if !m.pool.cfg.OnlyOnChange {
		m.setTimer(&l.renewTimer, m.pool.loop.Now()+m.renewInterval())
	}
}

// renewAd renews the lease of the ad.
func (m *machineNode) renewAd(l *adLink) {
	if !l.waiting && l.stream != nil {
		update := &adUpdate{m.ad}
		update.Ad, update.ParsedAd, update.Private = "", nil, nil
		l.waiting = true
		m.pool.network().sendOn(l.stream, 0, update)
	}
	m.setTimer(&l.renewTimer, m.pool.loop.Now()+m.renewInterval())
}

// reportLeases reports to the observer which claims hold their resources.
func (m *machineNode) reportLeases() {
	if m.pool.cfg.Observe == nil {
		return
	}
	m.reportAvailability()
	for _, id := range slices.Sorted(maps.Keys(m.leased)) {
		if c, ok := m.core.Claim(id); !ok || !c.HasResources() {
			delete(m.leased, id)
			m.pool.observe(audit.Event{Type: audit.Freed, Node: m.name, Claim: uint64(id)})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.claimRunners)) {
		if c, ok := m.core.Claim(id); ok && c.HasResources() && m.leased[id] != c.Resources {
			m.leased[id] = c.Resources
			m.pool.observe(audit.Event{Type: audit.Leased, Node: m.name, Claim: uint64(id), Resources: c.Resources,
				Until: c.Lease + m.bootedAt, Inside: uint64(c.Inside), Submitter: c.Owner})
		}
	}
}

func (m *machineNode) timerFired(a *daemonTimer) {
	switch a {
	case &m.wake:
	case &m.minor:
		m.advertiseAll(false)
	default:
		for i := range m.links {
			switch l := &m.links[i]; a {
			case &l.retryTimer:
				m.advertise(l)
			case &l.renewTimer:
				m.renewAd(l)
			}
		}
		return
	}
	m.runEffects()
}

func (m *machineNode) writeDone(uint64)              {}
func (m *machineNode) handleDatagram(*hostNode, any) {}
func (m *machineNode) check()                        { m.core.Check() }
