package pool

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// adminRepeat is how long an administrator waits for the answer to a command. Then the
// command goes to whoever leads by then.
const adminRepeat = time.Second

// scheduleDrains plans what administrators do to machines.
func (p *Pool) scheduleDrains() error {
	for i, d := range p.cfg.Drains {
		if p.byName[d.Machine] == nil {
			return fmt.Errorf("drain %d: %w: there is no machine %q", i, roost.Invalid, d.Machine)
		}
		p.lastSubmit = max(p.lastSubmit, d.At+d.Span)
		p.CallAt(d.At, func() { p.setDrain(d) })
		p.CallAt(d.At+d.Span, func() {
			p.beginCommand(d.Machine, ledger.AdminCommand{Verb: ledger.VerbRemove, Kind: ledger.KindDrain,
				Name: d.Machine})
		})
	}
	return nil
}

// setDrain drains a machine. The administrator's clock is right.
func (p *Pool) setDrain(d MachineDrain) {
	drain := ledger.MachineDrain{Node: d.Machine, Reason: "its disk is replaced", Evict: true}
	if d.Deadline > 0 {
		drain.Deadline = p.cfg.StartTime.Add(p.loop.Now() + d.Deadline)
	}
	object, err := json.Marshal(drain)
	if err != nil {
		panic(err)
	}
	p.beginCommand(d.Machine, ledger.AdminCommand{Verb: ledger.VerbSet, Kind: ledger.KindDrain, Object: object})
}

// beginCommand begins a command about a machine. One before that is not done yet is not
// repeated any more.
func (p *Pool) beginCommand(machine string, c ledger.AdminCommand) {
	c.Trusted = true
	p.lastCommand[machine]++
	p.administer(machine, p.lastCommand[machine], c)
}

// administer says a command to the negotiator that leads, until it is done or refused.
func (p *Pool) administer(machine string, number int, c ledger.AdminCommand) {
	if number != p.lastCommand[machine] {
		return
	}
	done := func(err error) {
		if err == nil || !errors.Is(err, roost.Unavailable) {
			p.lastCommand[machine] = max(p.lastCommand[machine], number+1) // it is not repeated any more
		}
	}
	for _, m := range p.managers {
		if m.isUp && m.nextDaemonTime() <= p.loop.Now() && m.core.Administer(c, done) {
			m.setTimer(&m.turnAt, p.loop.Now())
		}
	}
	p.CallAt(p.loop.Now()+adminRepeat, func() { p.administer(machine, number, c) })
}
