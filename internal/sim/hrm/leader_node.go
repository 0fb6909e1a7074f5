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

// leaderNode is the leading negotiator with its incoming and outgoing messages.
type leaderNode struct {
	*simulation
	core           *negotiator.LoopCore
	sessions       []*negotiator.ScheddSession // sessions with the schedds
	inbox          []leaderMessage             // messages not yet handled
	machineReports []negotiator.MachineUpdate
	entries        []logEntry // entries proposed in this turn
	index          uint64
	busy           bool
	wakeTime       time.Duration // planned wake-up; 0: none
}

// logEntry is a proposed log entry.
type logEntry struct {
	text []byte
	done func(any, error)
}

// units returns the number of containers that the entry grants.
func (e *logEntry) units() (n int) {
	read, err := ledger.Decode(e.text)
	if err != nil {
		return 0
	}
	for _, g := range read.Grants {
		n += g.Units
	}
	return n
}

// leaderMessage is an item in the leader's inbox.
type leaderMessage struct {
	do       func()
	things   int
	proposes bool
}

// Propose implements [negotiator.ReplicatedLog].
func (l *leaderNode) Propose(text []byte, done func(any, error)) {
	l.entries = append(l.entries, logEntry{text, done})
}

// newLeader returns a node that leads, knows all machines, and has sessions with all
// schedds.
func newLeader(w *simulation) (*leaderNode, error) {
	l := &leaderNode{simulation: w}
	l.core = negotiator.NewCore("manager", "manager:1", l)
	l.core.LeadershipChanged(w.now(), true, 1, "manager:1")
	if err := l.commitAll(); err != nil {
		return nil, err
	}
	if w.Style != LeaderOnly {
		epoch, _, _ := l.core.LeadingEpoch()
		e := &ledger.LogEntry{At: w.now().UnixNano(), Epoch: epoch, Commands: []ledger.AdminCommand{{
			Trusted: true, Verb: ledger.VerbSet, Kind: ledger.KindSetting,
			Object: fmt.Appendf(nil, `{"name": %q, "value": "on"}`, ledger.SettingDistributed),
		}}}
		l.index++
		if r := l.core.Apply(l.index, e.Encode(nil)).(ledger.EntryResult); r.Err != nil || r.Commands[0] != nil {
			return nil, fmt.Errorf("%s: %w: %v %v", ledger.SettingDistributed, roost.Internal, r.Err, r.Commands)
		}
	}
	for _, m := range w.machines {
		ad, err := m.ad()
		if err != nil {
			return nil, err
		}
		l.machineReports = append(l.machineReports,
			negotiator.ReadMachineUpdate(w.now(), m.name, 1, m.sequence, ad, privateKey()))
		for _, s := range w.schedds {
			s.handleMachineAd(m.name, m.sequence, ad)
		}
	}
	for _, s := range w.schedds {
		s.selfPlacement.Synced()
	}
	l.core.MachinesChanged(w.now(), l.machineReports, true)
	l.machineReports = nil
	for _, s := range w.schedds {
		v, err := l.core.JoinSchedd(w.now(), &wire.ScheddHello{Name: s.name, Tells: true})
		if err != nil {
			return nil, err
		}
		l.sessions = append(l.sessions, v)
		if err := l.core.HandleMessage(w.now(), v,
			&wire.FromSchedd{Of: &wire.FromSchedd_Told{Told: &wire.Told{}}}); err != nil {
			return nil, err
		}
	}
	l.core.ProcessEvents(w.now())
	if err := l.commitAll(); err != nil {
		return nil, err
	}
	return l, l.warmUp()
}

// warmUp lets each schedd request one container and withdraw the request. So the leader
// and the schedds have read the machine ads before the measurement, as in a cell that has
// run for a while.
func (l *leaderNode) warmUp() error {
	const nobody = math.MaxUint32
	for i, v := range l.sessions {
		s := l.schedds[i]
		say := func(m *wire.FromSchedd) error {
			s.selfPlacement.Propose(l.now(), []*wire.FromSchedd{m})
			return l.core.HandleMessage(l.now(), v, m)
		}
		hear := func(f func(*wire.ToSchedd) error) error {
			messages, _, err := v.TakeMessages(l.now())
			for _, m := range messages {
				s.handlePlacement(m)
				err = errors.Join(err, f(m))
			}
			return err
		}
		if err := hear(func(*wire.ToSchedd) error { return nil }); err != nil {
			return err
		}
		ask := &wire.RequestUpdate{Id: nobody, Owner: "nobody", Wanted: 1,
			Resources: wire.FromResources(containerResources), Ad: initialContainers, GrantsSeen: new(uint64)}
		if err := say(&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: ask}}); err != nil {
			return err
		}
		l.core.ProcessEvents(l.now())
		if err := l.commitAll(); err != nil {
			return err
		}
		granted := 0
		err := hear(func(m *wire.ToSchedd) error {
			g := m.GetGrant()
			if g == nil {
				return nil
			}
			granted, s.lastGrant = granted+1, g.GetId()
			return say(&wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: &wire.GrantResult{Grant: g.GetId(),
				Epoch: g.GetEpoch(), Reason: "nobody wants it"}}})
		})
		if err == nil && granted != 1 {
			err = fmt.Errorf("the first request of %s: %w: it has %d grants", s.name, roost.Internal, granted)
		}
		seen := s.lastGrant
		if err = errors.Join(err, say(&wire.FromSchedd{
			Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{Id: nobody, GrantsSeen: &seen}},
		})); err != nil {
			return err
		}
	}
	l.core.ProcessEvents(l.now())
	return l.commitAll()
}

// commitAll commits the initial entries at once.
func (l *leaderNode) commitAll() error {
	for len(l.entries) > 0 {
		e := l.entries[0]
		l.entries = l.entries[1:]
		l.index++
		result := l.core.Apply(l.index, e.text)
		if r, ok := result.(ledger.EntryResult); !ok || r.Err != nil {
			return fmt.Errorf("the first entries: %w: %v", roost.Internal, result)
		}
		e.done(result, nil)
		l.core.ProcessEvents(l.now())
	}
	return nil
}

// enqueue puts an item into the inbox.
func (l *leaderNode) enqueue(m leaderMessage) {
	l.inbox = append(l.inbox, m)
	l.processInbox()
}

// processInbox handles all items of the inbox, unless the leader is busy.
func (l *leaderNode) processInbox() {
	if l.busy {
		return
	}
	l.busy = true
	inbox, reports, step := l.inbox, l.machineReports, PlanCycle
	l.inbox, l.machineReports = nil, nil
	for _, m := range inbox {
		if m.proposes {
			step = CheckProposals
		}
	}
	sent := make([][]*wire.ToSchedd, len(l.sessions))
	l.runStep(step, -1, func() {
		for _, m := range inbox {
			m.do()
		}
		if len(reports) > 0 {
			l.core.MachinesChanged(l.now(), reports, true)
		}
		l.core.ProcessEvents(l.now())
		for i, v := range l.sessions {
			sent[i], _, _ = v.TakeMessages(l.now())
		}
	}, func() int {
		things := len(reports)
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
			l.scheduleAfter(l.CommitDelay, entryDurable, -1, func() { l.applyCommitted(e) })
		}
		for i, messages := range sent {
			if len(messages) > 0 {
				l.scheduleAfter(l.MessageDelay, messageArrived, i, func() { l.schedds[i].handleLeader(messages) })
			}
		}
		if len(l.inbox)+len(l.machineReports) > 0 {
			l.processInbox()
			return
		}
		l.scheduleWake()
	})
}

// applyCommitted applies a committed entry and informs the loop.
func (l *leaderNode) applyCommitted(e logEntry) {
	var result any
	l.runStep(ApplyEntry, -1, func() {
		l.index++
		result = l.core.Apply(l.index, e.text)
	}, e.units, func() {
		l.enqueue(leaderMessage{do: func() { e.done(result, nil) }})
	})
}

// minSleep is the shortest time to the next wake-up. Work that is due at once was done in
// this turn, or waits for entries that are not committed.
const minSleep = time.Millisecond

// scheduleWake plans the leader's next turn: when something is due, or after a period.
func (l *leaderNode) scheduleWake() {
	at := l.eventLoop.Now() + negotiator.CyclePeriod
	if wake, ok := l.core.NextWake(); ok {
		at = min(at, max(wake.Sub(startTime), l.eventLoop.Now()+minSleep))
	}
	if l.wakeTime > l.eventLoop.Now() && l.wakeTime <= at {
		return
	}
	l.wakeTime = at
	l.schedule(at, leaderWake, -1, func() {
		if l.wakeTime != at {
			return
		}
		l.wakeTime = 0
		l.enqueue(leaderMessage{do: func() { l.core.RunPeriodic(l.now()) }})
	})
}
