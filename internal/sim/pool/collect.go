package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator"
)

// adUpdate is what a startd says to a collector, and adAnswer what that says to it (package internal/advertise).
type (
	adUpdate struct{ adstore.Update }
	adAnswer struct{ resend bool }
)

// accept takes a stream in.
func (m *managerNode) accept(on *stream, hello any) {
	switch x := hello.(type) {
	case *adUpdate:
		m.advertised(on, x)
		return
	case *wire.WatchLeader:
		m.watchers = append(m.watchers, on)
		m.p.send(on, 1, m.leaderNews(&m.told))
		return
	case *wire.ScheddHello:
		with, err := m.core.Join(m.now(), x)
		if err != nil {
			m.p.hang(on, 1)
			return
		}
		m.talks = append(m.talks, &conversation{on: on, with: with})
	}
	m.turn()
}

// receive takes in a message.
func (m *managerNode) receive(on *stream, x any) {
	switch x := x.(type) {
	case *adUpdate:
		m.advertised(on, x)
		return
	case *wire.FromSchedd:
		for _, c := range m.talks {
			if c.on == on {
				_ = m.core.Hear(m.now(), c.with, x) // an error ends the conversation
			}
		}
	}
	m.turn()
}

func (m *managerNode) broken(on *stream) {
	switch on.kind {
	case ofGrants:
		m.left(on)
		m.turn()
	case ofLeaders:
		m.watchers = slices.DeleteFunc(m.watchers, func(o *stream) bool { return o == on })
	}
}

// advertised takes in an ad.
func (m *managerNode) advertised(on *stream, x *adUpdate) {
	outcome, err := m.store.Update(m.now(), x.Update)
	if err != nil {
		panic(m.name + ": an ad: " + err.Error())
	}
	m.p.send(on, 1, &adAnswer{outcome == adstore.Resend})
	if at, ok := m.store.NextWake(); ok && !m.p.cfg.Quiet {
		m.alarm(&m.lease, m.truth(at))
	}
	if outcome == adstore.Stored || outcome == adstore.Removed {
		m.machines()
		m.turn()
	}
}

// machines tells the negotiator what has changed. Each reads the collector beside it.
func (m *managerNode) machines() {
	var all []negotiator.MachineNews
	synced := false
	for m.feed.Pending() {
		deltas, err := m.feed.Take(1000)
		if err != nil {
			panic(m.name + ": its feed: " + err.Error())
		}
		for _, d := range deltas {
			switch e := d.Entry; {
			case d.Synced:
				synced = true
			case e == nil:
				all = append(all, negotiator.ReadMachine(m.now(), d.Name, 0, 0, nil, nil))
			default:
				all = append(all, negotiator.ReadMachine(m.now(), d.Name, e.Started, e.Sequence, e.Ad.Copy(), e.Private))
			}
		}
	}
	if len(all) > 0 || synced {
		m.core.MachinesChanged(m.now(), all, synced)
	}
}

// adLease is how long a collector keeps an ad of which it hears nothing more, and restate how often a startd makes its ad anew.
const (
	adLease = time.Minute
	restate = time.Minute
)
