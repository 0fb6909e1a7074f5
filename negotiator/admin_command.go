package negotiator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// adminCommand is an administrator's command on its way through the log.
type adminCommand struct {
	command ledger.AdminCommand
	answer  func(error) // called once, by the loop; it does not wait
}

// answerAdmins reports the outcome of their commands to administrators.
func (o proposalResult) answerAdmins() {
	for i, w := range o.entry.adminCommands {
		switch {
		case errors.Is(o.err, roost.Stale):
			w.answer(fmt.Errorf("the leader has changed meanwhile, and it was not done: %w", roost.Unavailable))
		case o.err != nil:
			w.answer(fmt.Errorf("the leader may have changed meanwhile, and it is unknown whether it was done: "+
				"%w: %w", roost.Unavailable, o.err))
		default:
			w.answer(o.result.Commands[i])
		}
	}
}

// viewLedger lets look read the ledger and the status of the pool, if this negotiator
// leads.
func (l *decisionLoop) viewLedger(ctx context.Context,
	look func(now time.Time, ledgerView *ledger.Ledger, p *poolStatus)) (err error) {
	derr := l.runInLoop(ctx, func(now time.Time) {
		if l.cell == nil {
			err = l.notLeaderError()
			return
		}
		p := l.cell.poolStatus()
		l.ledgerStore.view(func(ledgerView *ledger.Ledger) { look(now, ledgerView, p) })
	})
	return errors.Join(derr, err)
}

// commitCommand commits a command with the next entry, and waits until the schedds obey
// it.
func (l *decisionLoop) commitCommand(ctx context.Context, c ledger.AdminCommand) error {
	done := make(chan error, 1)
	if err := l.runInLoop(ctx, func(time.Time) {
		if l.cell == nil {
			done <- l.notLeaderError()
			return
		}
		l.cell.pendingEntry.adminCommands = append(l.cell.pendingEntry.adminCommands, adminCommand{c,
			func(err error) { done <- err }})
	}); err != nil {
		return err
	}
	select {
	case err := <-done:
		if err == nil {
			l.awaitSchedds(ctx)
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: it is not known whether it was done: %w", roost.Unavailable, ctx.Err())
	case <-l.done:
		return errStopping
	}
}

// poolStatus returns the present status of the pool.
func (c *leaderState) poolStatus() *poolStatus {
	p := &poolStatus{
		PoolUse: ledger.PoolUse{Total: c.total, Usage: map[fairshare.Submitter]roost.Resources{},
			HasWaiting: map[fairshare.Submitter]bool{}},
		machineExists: func(name string) bool { return c.machines[name] != nil },
	}
	for _, m := range c.sorted {
		p.Free = p.Free.Add(m.Free)
	}
	add := func(who fairshare.Submitter, r roost.Resources) { p.Usage[who] = p.Usage[who].Add(r) }
	for who, r := range c.unheardUsage {
		add(who, r)
	}
	for who, r := range c.grantedToSubmitter() {
		add(who, r)
	}
	for _, s := range c.schedds {
		for who, r := range s.usage {
			add(who, r)
		}
		for _, r := range s.requests {
			if r.wanted > 0 {
				p.HasWaiting[r.Submitter] = true
			}
		}
	}
	return p
}
