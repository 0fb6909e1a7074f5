package cli

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/roost-batch/roost/internal/wire"
)

// progress shows how far jobs are while somebody waits for them.
type progress interface {
	update(t *tally, e *wire.WatchEvent)
	end(t *tally)
}

// progress chooses how to show it: bars on a terminal, lines elsewhere.
func (c *call) progress(quiet bool) progress {
	switch {
	case c.cmd.name == "wait" && c.json():
		return &jsonProgress{c}
	case quiet:
		return noProgress{}
	case c.err.terminal:
		return &bars{call: c, began: c.now()}
	}
	return &lines{call: c}
}

type noProgress struct{}

func (noProgress) update(*tally, *wire.WatchEvent) {}
func (noProgress) end(*tally)                      {}

// jsonProgress prints each change for programs.
type jsonProgress struct{ *call }

func (p *jsonProgress) update(_ *tally, e *wire.WatchEvent) {
	failed := make([]jobRecord, len(e.GetFailed()))
	for i, s := range e.GetFailed() {
		failed[i] = recordOf(s, true)
	}
	printLine(p.stdout, document{"job": recordOf(e.GetStatus(), false), "failed": failed})
}

func (p *jsonProgress) end(*tally) {}

// lineEvery is how often a log is told about progress.
const lineEvery = 10 * time.Second

// lines prints a line now and then.
type lines struct {
	*call
	last   time.Time
	said   string
	failed int
	held   map[string]bool
}

func (p *lines) update(t *tally, e *wire.WatchEvent) {
	now := p.now()
	if n := t.failed(); n > p.failed && t.sample != nil && p.failed == 0 && t.only() == nil {
		p.failed = n
		fmt.Fprintln(p.stderr, "failed: "+failure(t.sample))
	}
	if s := e.GetStatus(); heldBack(s) != "" && !p.held[s.GetId()] {
		if p.held == nil {
			p.held = map[string]bool{}
		}
		p.held[s.GetId()] = true
		fmt.Fprintln(p.stderr, "held: "+heldBack(s))
	}
	if p.last.IsZero() || now.Sub(p.last) >= lineEvery {
		p.last = now
		p.say(t)
	}
}

// say prints how far everything is, unless that was the last thing said.
func (p *lines) say(t *tally) {
	if text := fmt.Sprintf("%s: %s", t.title(0), t); text != p.said {
		p.said = text
		fmt.Fprintln(p.stderr, text)
	}
}

func (p *lines) end(t *tally) {
	if len(t.jobs) > 0 && t.open() == 0 {
		p.say(t)
		if s := t.only(); s != nil && failures(s) > 0 {
			fmt.Fprintln(p.stderr, "failed: "+failure(s))
		}
	}
}

// only is the job, when it is one of a single task.
func (t *tally) only() *wire.JobStatus {
	if len(t.order) != 1 || t.jobs[t.order[0]].GetTasks() > 1 {
		return nil
	}
	return t.jobs[t.order[0]]
}

// bars draws one bar for everything that is waited for.
type bars struct {
	*call
	began time.Time
	base  int // tasks that had ended before we looked
	pool  *mpb.Progress
	bar   *mpb.Bar
	words atomic.Pointer[words]
}

// words is what stands around the bar. The goroutine that draws reads it, so it is replaced whole.
type words struct{ title, counts, sample string } // the sample is a task that needs attention

func (p *bars) snapshot() words { return *p.words.Load() }

func (p *bars) set(t *tally) {
	w := &words{title: t.title(max(p.err.width/3, 12))}
	if n := t.running(); n > 0 {
		w.counts = fmt.Sprintf("%d running", n)
	}
	if n := t.failed(); n > 0 {
		w.counts = strings.TrimPrefix(w.counts+", "+p.err.paint(red, fmt.Sprintf("%d failed", n)), ", ")
	}
	if n := t.held(); n > 0 {
		w.counts = strings.TrimPrefix(w.counts+", "+p.err.paint(yellow, fmt.Sprintf("%d held", n)), ", ")
	}
	if t.sample != nil && t.only() == nil {
		w.sample = "failed: " + failure(t.sample)
	} else if t.stuck != nil {
		w.sample = "held: " + heldBack(t.stuck)
	}
	p.words.Store(w)
	if p.bar != nil {
		p.bar.SetTotal(int64(t.tasks()), false)
		p.bar.SetCurrent(int64(t.done()))
	}
}

func (p *bars) update(t *tally, _ *wire.WatchEvent) {
	if p.pool == nil {
		p.base = t.done()
		p.set(t)
		p.start(t)
	}
	p.set(t)
}

func (p *bars) start(t *tally) {
	p.pool = mpb.NewWithContext(p.ctx, mpb.WithOutput(p.stderr), mpb.WithAutoRefresh(), mpb.WithRefreshRate(100*time.Millisecond))
	style := mpb.BarStyle().Lbound(" ").Rbound(" ").Filler("━").Tip("━").Padding("─")
	if p.err.colour {
		style = style.FillerMeta(func(s string) string { return p.err.paint(green, s) }).TipMeta(func(s string) string { return p.err.paint(green, s) }).
			PaddingMeta(func(s string) string { return p.err.paint(dim, s) })
	}
	w := p.err.width
	p.bar = p.pool.New(int64(t.tasks()), style, mpb.BarWidth(max(min(w-w/3-48, 40), 10)),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return p.snapshot().title })),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string { return p.figures(s) })),
		mpb.BarExtender(mpb.BarFillerFunc(func(to io.Writer, _ decor.Statistics) error {
			if sample := p.snapshot().sample; sample != "" {
				_, err := fmt.Fprintln(to, p.err.paint(red, shorten("  "+sample, max(w-1, 20))))
				return err
			}
			return nil
		}), false))
}

// figures is what stands behind the bar: counts, rate and how long it may take yet.
func (p *bars) figures(s decor.Statistics) string {
	text := fmt.Sprintf("%d/%d", s.Current, s.Total)
	if counts := p.snapshot().counts; counts != "" {
		text += "  " + counts
	}
	elapsed := p.now().Sub(p.began)
	fresh := s.Current - int64(p.base)
	if s.Current >= s.Total {
		return text + "  in " + span(elapsed)
	}
	if fresh < 1 || elapsed < 100*time.Millisecond {
		return text + "  " + span(elapsed)
	}
	rate := float64(fresh) / elapsed.Seconds()
	left := time.Duration(float64(s.Total-s.Current) / rate * float64(time.Second))
	return text + "  " + speed(rate) + "  ETA " + span(left)
}

// speed is a rate in tasks, per the unit that gives a number people can read.
func speed(perSecond float64) string {
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

func (p *bars) end(t *tally) {
	if p.pool == nil {
		return
	}
	p.set(t)
	if p.bar.Current() < int64(t.tasks()) {
		p.bar.Abort(false)
	}
	p.pool.Wait()
	if s := t.only(); s != nil && failures(s) > 0 {
		fmt.Fprintln(p.stderr, p.err.paint(red, "  failed: "+failure(s)))
	}
}
