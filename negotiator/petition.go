package negotiator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/share"
)

// petition is a command of an administrator on its way through the log.
type petition struct {
	command ledger.Command
	done    chan<- error // has room for one
}

// answer tells administrators what has become of what they wished.
func (o outcome) answer() {
	for i, w := range o.draft.petitions {
		switch {
		case errors.Is(o.err, roost.Stale):
			w.done <- fmt.Errorf("the lead has changed meanwhile, and it was not done: %w", roost.Unavailable)
		case o.err != nil:
			w.done <- fmt.Errorf("the lead may have changed meanwhile, and it is not known whether it was done: %w: %w", roost.Unavailable, o.err)
		default:
			w.done <- o.result.Commands[i]
		}
	}
}

// inspect lets look read the ledger, and how the pool stands, where this negotiator leads.
func (l *loop) inspect(ctx context.Context, look func(now time.Time, led *ledger.Ledger, p *stand)) (err error) {
	derr := l.do(ctx, func(now time.Time) {
		if l.cell == nil {
			err = l.elsewhere()
			return
		}
		p := l.cell.stand()
		l.record.look(func(led *ledger.Ledger) { look(now, led, p) })
	})
	return errors.Join(derr, err)
}

// command has a command committed, with the next entry.
func (l *loop) command(ctx context.Context, c ledger.Command) error {
	done := make(chan error, 1)
	if err := l.do(ctx, func(time.Time) {
		if l.cell == nil {
			done <- l.elsewhere()
			return
		}
		l.cell.draft.petitions = append(l.cell.draft.petitions, petition{c, done})
	}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: it is not known whether it was done: %w", roost.Unavailable, ctx.Err())
	case <-l.done:
		return errStopping
	}
}

// stand is how the pool stands now.
func (c *cell) stand() *stand {
	p := &stand{
		total: c.total, held: map[share.Submitter]roost.Resources{}, wants: map[share.Submitter]bool{},
		machines: func(name string) bool { return c.machines[name] != nil },
	}
	for _, m := range c.sorted {
		p.free = p.free.Add(m.Free)
	}
	add := func(who share.Submitter, r roost.Resources) { p.held[who] = p.held[who].Add(r) }
	for who, r := range c.absent {
		add(who, r)
	}
	for who, r := range c.granted() {
		add(who, r)
	}
	for _, s := range c.schedds {
		for who, r := range s.held {
			add(who, r)
		}
		for _, r := range s.requests {
			if r.wanted > 0 {
				p.wants[r.Submitter] = true
			}
		}
	}
	return p
}
