package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator"
)

// An adUpdate goes from a startd to a collector, and an adAnswer back (package
// internal/adclient).
type (
	adUpdate struct{ adstore.AdUpdate }
	adAnswer struct{ resend bool }
)

// acceptStream accepts a stream.
func (m *managerNode) acceptStream(on *daemonStream, hello any) {
	switch x := hello.(type) {
	case *adUpdate:
		m.handleAd(on, x)
		return
	case *wire.WatchLeader:
		m.watchers = append(m.watchers, on)
		m.pool.network().sendOn(on, 1, m.leaderMessage(&m.leaderReported))
		return
	case *wire.ScheddHello:
		with, err := m.core.JoinSchedd(m.wallTime(), x)
		if err != nil {
			m.pool.network().closeStream(on, 1)
			return
		}
		m.scheddSessions = append(m.scheddSessions, &scheddSession{stream: on, session: with})
	}
	m.runTurn()
}

// handleMessage handles a message.
func (m *managerNode) handleMessage(on *daemonStream, x any) {
	switch x := x.(type) {
	case *adUpdate:
		m.handleAd(on, x)
		return
	case *wire.FromSchedd:
		for _, c := range m.scheddSessions {
			if c.stream == on {
				_ = m.core.HandleMessage(m.wallTime(), c.session, x) // an error ends the session
			}
		}
	}
	m.runTurn()
}

func (m *managerNode) streamBroken(on *daemonStream) {
	switch on.kind {
	case grantStream:
		m.sessionEnded(on)
		m.runTurn()
	case leaderStream:
		m.watchers = slices.DeleteFunc(m.watchers, func(o *daemonStream) bool { return o == on })
	}
}

// handleAd handles an ad.
func (m *managerNode) handleAd(on *daemonStream, x *adUpdate) {
	outcome, err := m.store.Update(m.wallTime(), x.AdUpdate)
	if err != nil {
		panic(m.name + ": an ad: " + err.Error())
	}
	m.pool.network().sendOn(on, 1, &adAnswer{outcome == adstore.ResendAd})
	m.updateNames(x, outcome)
	if at, ok := m.store.NextWake(); ok && !m.pool.cfg.OnlyOnChange {
		m.setTimer(&m.lease, m.simTime(at))
	}
	if outcome == adstore.Stored || outcome == adstore.Removed {
		m.updateMachines()
		m.runTurn()
	}
}

// updateMachines passes changes of ads to the negotiator. Each negotiator reads the
// collector beside it.
func (m *managerNode) updateMachines() {
	var all []negotiator.MachineUpdate
	synced := false
	for m.machineFeed.HasPending() {
		deltas, err := m.machineFeed.Take(1000)
		if err != nil {
			panic(m.name + ": its feed: " + err.Error())
		}
		for _, d := range deltas {
			switch e := d.Entry; {
			case d.Synced:
				synced = true
			case e == nil:
				all = append(all, negotiator.ReadMachineUpdate(m.wallTime(), d.Name, 0, 0, nil, nil))
			default:
				all = append(all, negotiator.ReadMachineUpdate(m.wallTime(), d.Name, e.Started, e.Sequence, e.Ad.Copy(),
					e.Private))
			}
		}
	}
	if len(all) > 0 || synced {
		m.core.MachinesChanged(m.wallTime(), all, synced)
	}
}

// adLease is how long a collector stores an ad without renewal. adRestateInterval is how
// often a startd writes its ad anew.
const (
	adLease           = time.Minute
	adRestateInterval = time.Minute
)
