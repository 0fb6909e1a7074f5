package pool

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/collector/names"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// endpointRenewal is how often a startd with services renews its ad (package startd).
const endpointRenewal = 4 * time.Second

// managerNames is the names of services at a collector, after package collector. The
// observer sees them by a watch.
type managerNames struct {
	zone  *names.Zone
	feed  *adstore.TypeFeed
	watch *names.Watch
	wake  daemonTimer
	jobs  map[string]roost.JobID // by their text
}

// hasNames reports whether the names of services are simulated. Long runs without faults
// have none, because machines would have to renew them.
func (p *Pool) hasNames() bool { return p.hasServices && !p.cfg.OnlyOnChange && p.cfg.Observe != nil }

// startNames begins without names, which the ads of the machines bring.
func (m *managerNode) startNames() {
	if !m.pool.hasNames() {
		return
	}
	m.names = &managerNames{zone: names.New(names.Config{Domain: "roost.internal", Cell: "cell"}),
		jobs: map[string]roost.JobID{}}
	m.names.feed, _ = m.store.StartFeed("Machine")
	m.names.watch = m.names.zone.StartWatch(names.Selection{})
	m.pool.observe(audit.Event{Type: audit.NamesServed, Node: m.name})
}

func (m *managerNode) stopNames() {
	if m.names != nil {
		m.names = nil
		m.pool.observe(audit.Event{Type: audit.NamesGone, Node: m.name})
	}
}

// updateNames brings the names up to date after an update of an ad, or when some expire.
func (m *managerNode) updateNames(x *adUpdate, outcome adstore.UpdateOutcome) {
	n, now := m.names, m.wallTime()
	if n == nil {
		return
	}
	if x != nil && outcome == adstore.Renewed {
		n.zone.RenewLease(now, x.Name, names.DefaultLease)
	}
	for n.feed.HasPending() {
		changes, err := n.feed.Take(1000)
		if err != nil {
			panic(m.name + ": the feed of its names: " + err.Error())
		}
		for _, c := range changes {
			if !c.Synced {
				m.changeNames(now, c)
			}
		}
	}
	if at, ok := n.zone.NextWake(); ok && !now.Before(at) {
		n.zone.Expire(now)
	}
	if at, ok := n.zone.NextWake(); ok {
		m.setTimer(&n.wake, m.simTime(at))
	}
	if m.pool.cfg.SelfCheck {
		n.zone.Check()
	}
	m.reportNames()
}

// changeNames applies a change of a machine ad.
func (m *managerNode) changeNames(now time.Time, c adstore.AdChange) {
	if c.Entry == nil {
		m.names.zone.RemoveMachine(now, c.Name)
		return
	}
	id := m.pool.nodeByName(c.Name).id
	ad := names.MachineAd{Name: c.Name, Node: c.Name, Text: c.Entry.Text, Lease: names.DefaultLease,
		Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(id >> 16), byte(id >> 8), byte(id)})}}
	if err := m.names.zone.SetMachine(now, m.names.zone.ReadMachine(now, ad)); err != nil {
		panic(m.name + ": names: " + err.Error())
	}
}

// reportNames reports to the observer which names have changed.
func (m *managerNode) reportNames() {
	u := m.names.zone.Take(m.names.watch)
	for _, e := range u.Endpoints {
		m.pool.observe(audit.Event{Type: audit.NameSet, Node: m.name, Job: m.names.job(e.Job), Index: int(e.Index),
			Attempt: roost.AttemptNumber(e.Attempt), Detail: e.State.String()})
	}
	for _, key := range u.Removed {
		m.pool.observe(audit.Event{Type: audit.NameSet, Node: m.name, Job: m.names.job(key.Job), Index: int(key.Index)})
	}
}

// job returns the job with an id as text.
func (n *managerNames) job(text string) roost.JobID {
	id, ok := n.jobs[text]
	if !ok {
		var err error
		if id, err = roost.ParseJobID(text, ""); err != nil {
			panic(err) // a machine of this package has written it
		}
		n.jobs[text] = id
	}
	return id
}

// describeEndpoints says in the machine's ad where the tasks of services are reached, as
// startd does.
func (m *machineNode) describeEndpoints(ad *classad.Ad) {
	if !m.pool.hasNames() {
		return
	}
	var list []classad.Value
	for _, id := range sortedKeys(m.claimRunners) {
		if e := m.endpointAd(id); e != nil {
			list = append(list, classad.AdOf(e))
		}
	}
	m.endpoints = ""
	if len(list) > 0 {
		value := classad.ListValue(list...)
		m.endpoints = value.String()
		ad.SetValue(roost.AttrEndpoints, value)
	}
}

// endpointsChanged reports whether the ad says something else of the tasks of services
// than it should.
func (m *machineNode) endpointsChanged() bool {
	if !m.pool.hasNames() {
		return false
	}
	was := m.endpoints
	m.describeEndpoints(classad.New())
	return m.endpoints != was
}

// endpointAd describes the attempt of a service on a claim; nil if there is none.
func (m *machineNode) endpointAd(id slot.ClaimID) *classad.Ad {
	h := m.claimRunners[id]
	c, ok := m.core.Claim(id)
	if s := h.starter; !ok || !c.Running || s.initial || s.attempt != c.Attempt ||
		m.pool.cfg.Jobs[s.job].Service == nil {
		return nil
	}
	t := c.Attempt.Task
	ad := classad.New()
	ad.SetString("Job", t.Job.String())
	ad.SetString("Name", fmt.Sprintf("job%d", h.starter.job))
	ad.SetString("Owner", c.Owner)
	ad.SetInt("Index", int64(t.Index))
	ad.SetInt("Attempt", int64(c.Attempt.Attempt))
	ad.SetInt("Revision", 1)
	ad.SetString("State", h.starter.endpointState())
	return ad
}

// endpointState is how an attempt is, in the words of the ad. One without checks is ready
// when it runs.
func (s *starterProcess) endpointState() string {
	switch {
	case s.runner.machine.pool.cfg.Jobs[s.job].Health == nil, s.health == wire.HealthState_HEALTH_STATE_READY:
		return names.Ready.String()
	case s.health == wire.HealthState_HEALTH_STATE_STARTING:
		return names.Starting.String()
	}
	return names.Unready.String()
}

// renewInterval is how often the machine renews its ad.
func (m *machineNode) renewInterval() time.Duration {
	if m.endpoints != "" {
		return endpointRenewal
	}
	return adLease / 3
}
