package negotiator

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
)

// Bounds of the loop's channel, and how often usage is saved.
const (
	inboxSize = 4096
	saveEvery = time.Minute
)

// loop is the goroutine that owns the cell. Events are functions of it.
type loop struct {
	cell     *cell
	standing *standing
	inbox    chan func(now time.Time)
	done     chan struct{} // closed when the loop has ended
	period   time.Duration // the longest time between two cycles
	dir      string        // where usage is kept
	log      *slog.Logger
}

// run takes events in until ctx ends, and makes a cycle whenever they have changed something: at once, but after all that already waits.
func (l *loop) run(ctx context.Context) error {
	defer close(l.done)
	periodic := time.NewTicker(l.period)
	defer periodic.Stop()
	save := time.NewTicker(saveEvery)
	defer save.Stop()
	for {
		var due <-chan time.Time
		var timer *time.Timer
		if at, ok := l.cell.wake(); ok {
			timer = time.NewTimer(time.Until(at))
			due = timer.C
		}
		var err error
		select {
		case <-ctx.Done():
			return l.save(time.Now())
		case event := <-l.inbox:
			now := time.Now()
			event(now)
			for range len(l.inbox) {
				(<-l.inbox)(now)
			}
		case <-due:
			l.cell.stir(time.Now())
		case <-periodic.C:
			l.cell.charge(time.Now())
			l.cell.changed = true
		case <-save.C:
			err = l.save(time.Now())
		}
		if timer != nil {
			timer.Stop()
		}
		if err != nil {
			return err
		}
		if l.cell.changed {
			began := time.Now()
			l.cell.cycle(began)
			if took := time.Since(began); took > time.Second {
				l.log.Warn("slow cycle", "took", took, "machines", len(l.cell.machines))
			}
		}
		if d, ok := l.cell.take(time.Now()); ok {
			l.cell.committed(time.Now(), d)
		}
	}
}

// save writes the usage of all submitters. What a crash loses is the last minute of it.
func (l *loop) save(now time.Time) error {
	text, err := l.cell.book.Save(now)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(l.dir, usageFile), text)
}

// do runs event in the loop's goroutine and waits for it.
func (l *loop) do(ctx context.Context, event func(now time.Time)) error {
	ran := make(chan struct{})
	select {
	case l.inbox <- func(now time.Time) { event(now); close(ran) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return errStopping
	}
	select {
	case <-ran:
		return nil
	case <-l.done:
		return errStopping
	}
}

// post hands an event to the loop and does not wait until it was run.
func (l *loop) post(ctx context.Context, event func(now time.Time)) {
	select {
	case l.inbox <- event:
	case <-ctx.Done():
	case <-l.done:
	}
}

// errStopping is what conversations get that are under way when the negotiator ends.
var errStopping error = stopping{}

type stopping struct{}

func (stopping) Error() string { return "negotiator: stopping" }
func (stopping) Unwrap() error { return roost.Unavailable }
