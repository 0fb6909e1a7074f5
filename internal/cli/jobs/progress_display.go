package jobs

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// ProgressDisplay shows the progress of jobs while a command waits for them.
type ProgressDisplay interface {
	update(t *Progress, e *scheddapi.WatchEvent)
	end(t *Progress)
}

// Bar is a bar on a terminal.
type Bar interface {
	SetTotal(total int64)
	SetCurrent(n int64)
	Current() int64
	Abort() // ends it where it is
	Wait()  // until it is drawn for the last time
}

// BarSpec is what a bar shows. It is drawn by a goroutine that calls the functions.
type BarSpec struct {
	Total  int64
	Title  func() string                     // before the bar
	Counts func(current, total int64) string // behind it
	Sample func() string                     // on the next line; empty: there is none
}

// BarMaker draws a bar on the standard error of a command.
type BarMaker func(c *frame.Invocation, spec BarSpec) Bar

// newProgress chooses how to show it: bars on a terminal, lines elsewhere.
func newProgress(c *frame.Invocation, bars BarMaker, quiet bool) ProgressDisplay {
	switch {
	case c.Command.Name == "wait" && c.WantsJSON():
		return &jsonProgress{c}
	case quiet:
		return NoProgress{}
	case c.ErrScreen.Terminal:
		return &barProgress{Invocation: c, makeBar: bars, began: c.Now()}
	}
	return &lineProgress{Invocation: c}
}

// NoProgress shows nothing.
type NoProgress struct{}

func (NoProgress) update(*Progress, *scheddapi.WatchEvent) {}
func (NoProgress) end(*Progress)                           {}

// jsonProgress prints each change for programs.
type jsonProgress struct{ *frame.Invocation }

func (p *jsonProgress) update(_ *Progress, e *scheddapi.WatchEvent) {
	failed := make([]document.Job, len(e.GetFailed()))
	for i, s := range e.GetFailed() {
		failed[i] = document.JobOf(s, true)
	}
	frame.PrintLine(p.Stdout, frame.JSONDocument{"job": document.JobOf(e.GetStatus(), false), "failed": failed})
}

func (p *jsonProgress) end(*Progress) {}

// lineInterval is how often a log is told about progress.
const lineInterval = 10 * time.Second

// lineProgress prints a line now and then.
type lineProgress struct {
	*frame.Invocation
	lastPrinted time.Time
	lastText    string
	failed      int
	held        map[string]bool
}

func (p *lineProgress) update(t *Progress, e *scheddapi.WatchEvent) {
	now := p.Now()
	if n := t.failedCount(); n > p.failed && t.failedTask != nil && p.failed == 0 && t.onlyJob() == nil {
		p.failed = n
		fmt.Fprintln(p.Stderr, "failed: "+failureText(t.failedTask))
	}
	if s := e.GetStatus(); holdReason(s) != "" && !p.held[s.GetId()] {
		if p.held == nil {
			p.held = map[string]bool{}
		}
		p.held[s.GetId()] = true
		fmt.Fprintln(p.Stderr, "held: "+holdReason(s))
	}
	if p.lastPrinted.IsZero() || now.Sub(p.lastPrinted) >= lineInterval {
		p.lastPrinted = now
		p.printState(t)
	}
}

// printState prints how far everything is, unless that was the last thing said.
func (p *lineProgress) printState(t *Progress) {
	if text := fmt.Sprintf("%s: %s", t.title(0), t); text != p.lastText {
		p.lastText = text
		fmt.Fprintln(p.Stderr, text)
	}
}

func (p *lineProgress) end(t *Progress) {
	if len(t.Jobs) > 0 && t.openCount() == 0 {
		p.printState(t)
		if s := t.onlyJob(); s != nil && document.FailedCount(s) > 0 {
			fmt.Fprintln(p.Stderr, "failed: "+failureText(s))
		}
	}
}

// onlyJob is the job, when it is one of a single task.
func (t *Progress) onlyJob() *scheddapi.JobStatus {
	if len(t.order) != 1 || t.Jobs[t.order[0]].GetTasks() > 1 {
		return nil
	}
	return t.Jobs[t.order[0]]
}

// barProgress draws one bar for everything that is waited for.
type barProgress struct {
	*frame.Invocation
	began       time.Time
	initialDone int // tasks that had ended before we looked
	makeBar     BarMaker
	bar         Bar // nil: nothing is shown yet
	words       atomic.Pointer[barLabels]
}

// barLabels is what stands around the bar. The goroutine that draws reads it, so it is
// replaced whole.
type barLabels struct{ title, countsText, sample string } // the sample is a task that needs attention

func (p *barProgress) poolSnapshot() barLabels { return *p.words.Load() }

func (p *barProgress) setTotals(t *Progress) {
	w := &barLabels{title: t.title(max(p.ErrScreen.Width/3, 12))}
	if n := t.runningCount(); n > 0 {
		w.countsText = fmt.Sprintf("%d running", n)
	}
	if n := t.failedCount(); n > 0 {
		w.countsText = strings.TrimPrefix(w.countsText+", "+p.ErrScreen.ColourText(frame.Red,
			fmt.Sprintf("%d failed", n)), ", ")
	}
	if n := t.heldCount(); n > 0 {
		w.countsText = strings.TrimPrefix(w.countsText+", "+p.ErrScreen.ColourText(frame.Yellow,
			fmt.Sprintf("%d held", n)), ", ")
	}
	if s := t.onlyJob(); s != nil && len(s.GetTransfers()) > 0 {
		w.countsText = document.TransferText(s.GetTransfers()[0])
	}
	if t.failedTask != nil && t.onlyJob() == nil {
		w.sample = "failed: " + failureText(t.failedTask)
	} else if t.heldJob != nil {
		w.sample = "held: " + holdReason(t.heldJob)
	}
	p.words.Store(w)
	if p.bar != nil {
		p.bar.SetTotal(int64(t.taskCount()))
		p.bar.SetCurrent(int64(t.doneCount()))
	}
}

func (p *barProgress) update(t *Progress, _ *scheddapi.WatchEvent) {
	if p.bar == nil {
		p.initialDone = t.doneCount()
		p.setTotals(t)
		p.start(t)
	}
	p.setTotals(t)
}

func (p *barProgress) start(t *Progress) {
	p.bar = p.makeBar(p.Invocation, BarSpec{
		Total:  int64(t.taskCount()),
		Title:  func() string { return p.poolSnapshot().title },
		Counts: p.totalsText,
		Sample: func() string { return p.poolSnapshot().sample },
	})
}

// totalsText is what stands behind the bar: counts, rate and how long it may take yet.
func (p *barProgress) totalsText(current, total int64) string {
	text := fmt.Sprintf("%d/%d", current, total)
	if counts := p.poolSnapshot().countsText; counts != "" {
		text += "  " + counts
	}
	elapsed := p.Now().Sub(p.began)
	fresh := current - int64(p.initialDone)
	if current >= total {
		return text + "  in " + document.SpanText(elapsed)
	}
	if fresh < 1 || elapsed < 100*time.Millisecond {
		return text + "  " + document.SpanText(elapsed)
	}
	rate := float64(fresh) / elapsed.Seconds()
	left := time.Duration(float64(total-current) / rate * float64(time.Second))
	return text + "  " + rateText(rate) + "  ETA " + document.SpanText(left)
}

// rateText is a rate in tasks, per the unit that gives a number people can read.
func rateText(perSecond float64) string {
	switch {
	case perSecond >= 10:
		return fmt.Sprintf("%.0f/s", perSecond)
	case perSecond >= 0.5:
		return fmt.Sprintf("%.1f/s", perSecond)
	case perSecond >= 0.5/60:
		return fmt.Sprintf("%.1f/min", perSecond*60)
	}
	return fmt.Sprintf("%.1f/h", perSecond*3600)
}

func (p *barProgress) end(t *Progress) {
	if p.bar == nil {
		return
	}
	p.setTotals(t)
	if p.bar.Current() < int64(t.taskCount()) {
		p.bar.Abort()
	}
	p.bar.Wait()
	if s := t.onlyJob(); s != nil && document.FailedCount(s) > 0 {
		fmt.Fprintln(p.Stderr, p.ErrScreen.ColourText(frame.Red, "  failed: "+failureText(s)))
	}
}
