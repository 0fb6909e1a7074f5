package hrm

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// leader is the negotiator that leads, with what comes in and goes out.
type leader struct {
	*world
	core    *negotiator.Core
	talks   []*negotiator.Conversation // with the schedds
	inbox   []message                  // what has come and was not taken in yet
	news    []negotiator.MachineNews
	entries []entry // proposed in this turn
	index   uint64
	busy    bool
	due     time.Duration // when it is to be woken; 0: it is not
}

// entry is one on its way to the disks.
type entry struct {
	text []byte
	done func(any, error)
}

// units is how many containers it gives a place.
func (e *entry) units() (n int) {
	read, err := ledger.Decode(e.text)
	if err != nil {
		return 0
	}
	for _, g := range read.Grants {
		n += g.Units
	}
	return n
}

// message is something for the leader to take in.
type message struct {
	do       func()
	things   int
	proposes bool
}

// Propose implements [negotiator.Log].
func (l *leader) Propose(text []byte, done func(any, error)) {
	l.entries = append(l.entries, entry{text, done})
}

// newLeader returns a leader that leads, knows all machines, and has all schedds.
func newLeader(w *world) (*leader, error) {
	l := &leader{world: w}
	l.core = negotiator.NewCore("manager", "manager:1", l)
	l.core.Turned(w.now(), true, 1, "manager:1")
	if err := l.settle(); err != nil {
		return nil, err
	}
	if w.Style != Central {
		epoch, _, _ := l.core.Leads()
		e := &ledger.Entry{At: w.now().UnixNano(), Epoch: epoch, Commands: []ledger.Command{{
			Trusted: true, Verb: ledger.Set, Kind: ledger.KindSetting, Object: fmt.Appendf(nil, `{"name": %q, "value": "on"}`, ledger.Distributed),
		}}}
		l.index++
		if r := l.core.Apply(l.index, e.Encode(nil)).(ledger.Result); r.Err != nil || r.Commands[0] != nil {
			return nil, fmt.Errorf("%s: %w: %v %v", ledger.Distributed, roost.Internal, r.Err, r.Commands)
		}
	}
	for _, m := range w.machines {
		ad, err := m.ad()
		if err != nil {
			return nil, err
		}
		l.news = append(l.news, negotiator.ReadMachine(w.now(), m.name, 1, m.sequence, ad, private()))
		for _, s := range w.schedds {
			s.told(m.name, m.sequence, ad)
		}
	}
	for _, s := range w.schedds {
		s.placing.Synced()
	}
	l.core.MachinesChanged(w.now(), l.news, true)
	l.news = nil
	for _, s := range w.schedds {
		v, err := l.core.Join(w.now(), &wire.ScheddHello{Name: s.name, Tells: true})
		if err != nil {
			return nil, err
		}
		l.talks = append(l.talks, v)
		if err := l.core.Hear(w.now(), v, &wire.FromSchedd{Of: &wire.FromSchedd_Told{Told: &wire.Told{}}}); err != nil {
			return nil, err
		}
	}
	l.core.Turn(w.now())
	if err := l.settle(); err != nil {
		return nil, err
	}
	return l, l.warm()
}

// warm has each schedd ask once for a container that it does not want, so that the leader and the schedds have read the machines' ads before it counts, as
// they have where a cell has run for a while.
func (l *leader) warm() error {
	const nobody = math.MaxUint32
	for i, v := range l.talks {
		s := l.schedds[i]
		say := func(m *wire.FromSchedd) error {
			s.placing.Propose(l.now(), []*wire.FromSchedd{m})
			return l.core.Hear(l.now(), v, m)
		}
		hear := func(f func(*wire.ToSchedd) error) error {
			messages, _, err := v.Take(l.now())
			for _, m := range messages {
				s.hear(m)
				err = errors.Join(err, f(m))
			}
			return err
		}
		if err := hear(func(*wire.ToSchedd) error { return nil }); err != nil {
			return err
		}
		ask := &wire.RequestUpdate{Id: nobody, Owner: "nobody", Wanted: 1, Resources: wire.FromResources(container), Ad: wants, GrantsSeen: new(uint64)}
		if err := say(&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: ask}}); err != nil {
			return err
		}
		l.core.Turn(l.now())
		if err := l.settle(); err != nil {
			return err
		}
		granted := 0
		err := hear(func(m *wire.ToSchedd) error {
			g := m.GetGrant()
			if g == nil {
				return nil
			}
			granted, s.seen = granted+1, g.GetId()
			return say(&wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: &wire.GrantResult{Grant: g.GetId(), Epoch: g.GetEpoch(), Reason: "nobody wants it"}}})
		})
		if err == nil && granted != 1 {
			err = fmt.Errorf("the first request of %s: %w: it has %d grants", s.name, roost.Internal, granted)
		}
		seen := s.seen
		if err = errors.Join(err, say(&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{Id: nobody, GrantsSeen: &seen}}})); err != nil {
			return err
		}
	}
	l.core.Turn(l.now())
	return l.settle()
}

// settle commits at once what the beginning takes.
func (l *leader) settle() error {
	for len(l.entries) > 0 {
		e := l.entries[0]
		l.entries = l.entries[1:]
		l.index++
		result := l.core.Apply(l.index, e.text)
		if r, ok := result.(ledger.Result); !ok || r.Err != nil {
			return fmt.Errorf("the first entries: %w: %v", roost.Internal, result)
		}
		e.done(result, nil)
		l.core.Turn(l.now())
	}
	return nil
}

// take puts something into the inbox.
func (l *leader) take(m message) {
	l.inbox = append(l.inbox, m)
	l.turn()
}

// turn takes in all that has come and does what follows, if it is not at it.
func (l *leader) turn() {
	if l.busy {
		return
	}
	l.busy = true
	inbox, news, step := l.inbox, l.news, Decide
	l.inbox, l.news = nil, nil
	for _, m := range inbox {
		if m.proposes {
			step = Arbitrate
		}
	}
	sent := make([][]*wire.ToSchedd, len(l.talks))
	l.takes(step, -1, func() {
		for _, m := range inbox {
			m.do()
		}
		if len(news) > 0 {
			l.core.MachinesChanged(l.now(), news, true)
		}
		l.core.Turn(l.now())
		for i, v := range l.talks {
			sent[i], _, _ = v.Take(l.now())
		}
	}, func() int {
		things := len(news)
		for _, m := range inbox {
			things += m.things
		}
		for i := range l.entries {
			things += l.entries[i].units()
		}
		return things
	}, func() {
		l.busy = false
		entries := l.entries
		l.entries = nil
		for _, e := range entries {
			l.after(l.Commit, durable, -1, func() { l.committed(e) })
		}
		for i, messages := range sent {
			if len(messages) > 0 {
				l.after(l.Delay, arrive, i, func() { l.schedds[i].heard(messages) })
			}
		}
		if len(l.inbox)+len(l.news) > 0 {
			l.turn()
			return
		}
		l.sleep()
	})
}

// committed applies an entry, and tells the loop.
func (l *leader) committed(e entry) {
	var result any
	l.takes(Apply, -1, func() {
		l.index++
		result = l.core.Apply(l.index, e.text)
	}, e.units, func() {
		l.take(message{do: func() { e.done(result, nil) }})
	})
}

// soonest is how soon it is woken at most: what is due at once was done in this turn, or waits for entries that are under way.
const soonest = time.Millisecond

// sleep has the leader woken when something is due, or its period is over.
func (l *leader) sleep() {
	at := l.k.Now() + negotiator.Period
	if wake, ok := l.core.Wake(); ok {
		at = min(at, max(wake.Sub(begin), l.k.Now()+soonest))
	}
	if l.due > l.k.Now() && l.due <= at {
		return
	}
	l.due = at
	l.at(at, wake, -1, func() {
		if l.due != at {
			return
		}
		l.due = 0
		l.take(message{do: func() { l.core.Periodic(l.now()) }})
	})
}
