package probe

import (
	"context"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/startd/health"
)

// execTurn is the run of an exec check whose turn among those of its task has come.
type execTurn struct {
	dueCheck
	since roost.BootTime // when it should have begun
}

// queueCommand runs the command of a check when no other of its task runs.
func (p *Prober) queueCommand(d dueCheck) {
	w := d.watch
	if w.execBusy {
		w.execQueue = append(w.execQueue, d)
		return
	}
	w.execBusy = true
	p.execWaiting = append(p.execWaiting, &execTurn{d, d.At + startInterval})
}

// startCommands starts the commands that wait, as many as may run at a time.
func (p *Prober) startCommands(ctx context.Context, now roost.BootTime) {
	for len(p.execWaiting) > 0 && p.execRunning < maxCommands {
		turn := p.execWaiting[0]
		p.execWaiting = p.execWaiting[1:]
		if turn.watch.ended {
			continue
		}
		p.execRunning++
		p.executing.Go(func() { p.execute(ctx, turn, now) })
	}
}

// execute runs a command, beside the goroutine of Run.
func (p *Prober) execute(ctx context.Context, turn *execTurn, began roost.BootTime) {
	check := turn.watch.tracker.Check(turn.Index)
	limited, cancel := context.WithTimeout(ctx, check.Timeout)
	defer cancel()
	stopped := make(chan roost.BootTime, 1)
	defer context.AfterFunc(limited, func() { stopped <- boottime.Now() })()
	fault, err := turn.watch.target.Exec(limited, check.Command)
	over, end := limited.Err() == context.DeadlineExceeded, roost.BootTime(0)
	if over { // what it takes to find and kill what the command has left is no delay
		end = <-stopped
	}
	now := boottime.Now()
	p.post(func() {
		p.execRunning--
		result := health.Result{Outcome: health.Passed}
		late := max(began-turn.since, 0)
		switch {
		case over:
			late += max(end-began-check.Timeout, 0)
			result = health.Judge(check, late, fmt.Sprintf("it did not end within %v", check.Timeout))
		case err != nil:
			result = health.Result{Outcome: health.Unknown,
				Detail: "the command cannot be run: " + printable(err.Error())}
		case fault != "":
			result = health.Judge(check, late, printable(fault))
		}
		p.finish(turn.dueCheck, began, now, result)
		p.nextCommand(turn.watch, now)
	})
}

// nextCommand gives the turn to the next exec check of a task. That it waited for another
// of the same task is no delay of ours.
func (p *Prober) nextCommand(w *Watch, now roost.BootTime) {
	w.execBusy = false
	if w.ended || len(w.execQueue) == 0 {
		w.execQueue = nil
		return
	}
	next := w.execQueue[0]
	w.execQueue, w.execBusy = w.execQueue[1:], true
	p.execWaiting = append(p.execWaiting, &execTurn{next, now})
}
