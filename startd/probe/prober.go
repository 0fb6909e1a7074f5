package probe

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/startd/health"
)

// Bounds of a prober.
const (
	maxConnections = 1024 // open at a time; a check that waits for one is late
	maxCommands    = 16   // of exec checks at a time
	// how long due checks wait for others, so that they start together: what wakes the
	// prober costs as much as a check
	startInterval = 50 * time.Millisecond
	// when answers are looked for: this long after a check has started, and then at
	// distances that double
	firstPoll = time.Millisecond
	lastPoll  = 50 * time.Millisecond
)

// Target is an attempt with its checks.
type Target struct {
	Checks []health.Check
	Ports  map[string]netip.AddrPort // the task's own, by name
	Last   health.State              // that an earlier start of the startd reported; Starting: none
	// Suspended reports whether the task stands still. The prober calls it before and
	// after each run.
	Suspended func() bool
	// Exec runs a command in the task's sandbox until ctx ends. It returns what is wrong,
	// empty for nothing. An error says that it could not be run, and the task is not the
	// reason.
	Exec func(ctx context.Context, command []string) (fault string, err error)
	// Report takes a change of the state, or of how a check is. It must not wait.
	Report func(health.Report, []health.CheckResult)
}

// Observer takes the result of each run, for metrics. It must not wait.
type Observer func(kind health.CheckKind, outcome health.Outcome, duration time.Duration)

// Prober runs the checks of all attempts of a machine. Its exported methods are for all
// goroutines.
type Prober struct {
	observe Observer
	poller  *poller

	interrupted chan struct{} // has room for one

	mu       sync.Mutex
	commands []func() // for the goroutine of Run
	stopped  bool

	// of the goroutine of Run
	schedule    watchHeap
	connections connectionHeap
	waiting     []dueCheck // for a connection
	open        int
	pollAt      roost.BootTime // when answers are looked for, if connections are open
	pollPause   time.Duration  // before the next time after that
	execWaiting []*execTurn
	execRunning int
	executing   sync.WaitGroup
	buffer      []byte // for what is read
}

// New returns a prober. Run starts it.
func New(observe Observer) (*Prober, error) {
	poller, err := newPoller()
	if err != nil {
		return nil, fmt.Errorf("health checks: %w: %w", roost.Unavailable, err)
	}
	return &Prober{observe: observe, poller: poller, interrupted: make(chan struct{}, 1),
		buffer: make([]byte, maxBody)}, nil
}

// Watch is an attempt that is checked.
type Watch struct {
	prober  *Prober
	target  Target
	tracker *health.Tracker
	last    health.Report
	results []health.CheckResult // that were reported last
	request [][]byte             // by index of the check
	wake    roost.BootTime
	place   int // in the schedule; below 0: not there
	ended   bool

	execBusy  bool
	execQueue []dueCheck
}

// dueCheck is a run of a check.
type dueCheck struct {
	watch *Watch
	health.Due
}

// Start begins to check an attempt.
func (p *Prober) Start(t Target) *Watch {
	w := &Watch{prober: p, target: t, place: -1}
	w.request = make([][]byte, len(t.Checks))
	for i := range t.Checks {
		w.request[i] = requestText(&t.Checks[i], t.Ports)
	}
	p.post(func() {
		w.tracker = health.NewTracker(boottime.Now(), t.Checks, t.Last, rand.Float64)
		w.last, w.results = w.tracker.Report(), w.tracker.Results()
		w.target.Report(w.last, w.results)
		p.reschedule(w)
	})
	return w
}

// Hold has no check run for a time; 0: they run again.
func (w *Watch) Hold(d time.Duration) {
	w.prober.post(func() {
		w.tracker.Hold(boottime.Now() + d)
		w.prober.reschedule(w)
	})
}

// Leave notes that the attempt is being stopped. It is not checked any more.
func (w *Watch) Leave() {
	w.prober.post(func() {
		w.tracker.SetLeaving()
		w.prober.publish(w)
		w.prober.reschedule(w)
	})
}

// Stop ends the checks. There is no report after it was carried out.
func (w *Watch) Stop() {
	w.prober.post(func() {
		w.ended = true
		w.prober.reschedule(w)
	})
}

// post has the goroutine of Run call f.
func (p *Prober) post(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.commands = append(p.commands, f)
	select {
	case p.interrupted <- struct{}{}:
	default:
	}
}

func (p *Prober) takeCommands() []func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	commands := p.commands
	p.commands = nil
	return commands
}

// Run runs checks until ctx ends. It waits for the commands that it has started.
func (p *Prober) Run(ctx context.Context) error {
	defer p.close()
	ctx, cancel := context.WithCancel(ctx)
	defer p.executing.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		for _, f := range p.takeCommands() {
			f()
		}
		now := boottime.Now()
		if err := p.collectAnswers(now); err != nil {
			return fmt.Errorf("health checks: %w: %w", roost.Unavailable, err)
		}
		p.expireConnections(now)
		p.startDue(ctx, now)
		timer.Reset(min(max(p.nextWake()-boottime.Now(), 0), time.Hour))
		select {
		case <-timer.C:
		case <-p.interrupted:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// collectAnswers goes on with connections that are ready.
func (p *Prober) collectAnswers(now roost.BootTime) error {
	if len(p.connections) == 0 || now < p.pollAt {
		return nil
	}
	for more := true; more; {
		var ready []*connection
		var err error
		if ready, more, err = p.poller.poll(); err != nil {
			return err
		}
		for _, c := range ready {
			if !c.done {
				c.advance(p.buffer)
				p.finishIfDone(c, now)
			}
		}
	}
	p.pollAt = now + p.pollPause
	p.pollPause = min(2*p.pollPause, lastPoll)
	return nil
}

// close ends everything that is open.
func (p *Prober) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped, p.commands = true, nil
	for _, c := range p.connections {
		c.close()
	}
	p.poller.close()
}

// nextWake is when there is something to do that no event tells.
func (p *Prober) nextWake() roost.BootTime {
	wake := roost.BootTime(math.MaxInt64)
	if len(p.schedule) > 0 && p.schedule[0].wake < wake-startInterval {
		wake = p.schedule[0].wake + startInterval
	}
	if len(p.connections) > 0 {
		wake = min(wake, p.connections[0].deadline, p.pollAt)
	}
	return wake
}

// startDue starts the checks that are due.
func (p *Prober) startDue(ctx context.Context, now roost.BootTime) {
	for len(p.schedule) > 0 && p.schedule[0].wake <= now {
		w := p.schedule[0]
		due, _ := w.tracker.Todo(now)
		for _, d := range due {
			p.begin(dueCheck{w, d}, now)
		}
		p.reschedule(w)
	}
	for len(p.waiting) > 0 && p.open < maxConnections {
		d := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.connect(d, now)
	}
	p.startCommands(ctx, now)
}

// begin begins one run of a check.
func (p *Prober) begin(d dueCheck, now roost.BootTime) {
	w := d.watch
	switch {
	case w.target.Suspended():
		p.finish(d, now, now, health.Result{Outcome: health.Unknown})
	case w.tracker.Check(d.Index).Kind == health.ExecCheck:
		p.queueCommand(d)
	case p.open >= maxConnections:
		p.waiting = append(p.waiting, d)
	default:
		p.connect(d, now)
	}
}

// finish takes in the result of a run that began at a time.
func (p *Prober) finish(d dueCheck, began, now roost.BootTime, r health.Result) {
	w := d.watch
	if w.ended {
		return
	}
	if r.Outcome == health.Failed && w.target.Suspended() {
		r = health.Result{Outcome: health.Unknown}
	}
	p.observe(w.tracker.Check(d.Index).Kind, r.Outcome, now-began)
	w.tracker.Apply(now, d.Index, r)
	p.publish(w)
	p.reschedule(w)
}

// publish reports the state if another one was reported last, or another result of a
// check.
func (p *Prober) publish(w *Watch) {
	if w.ended {
		return
	}
	now, news := w.tracker.Report(), false
	last := w.last
	if news = now.State != last.State || now.Check != last.Check || now.Detail != last.Detail; !news {
		for i, last := range w.results {
			news = news || w.tracker.Result(i).IsNews(last)
		}
	}
	if news {
		w.last, w.results = now, w.tracker.Results()
		w.target.Report(w.last, w.results)
	}
}

// reschedule puts a watch where its next check is due, or takes it out.
func (p *Prober) reschedule(w *Watch) {
	if w.ended {
		if w.place >= 0 {
			heap.Remove(&p.schedule, w.place)
		}
		return
	}
	w.wake = w.tracker.NextDue()
	if w.place < 0 {
		heap.Push(&p.schedule, w)
	} else {
		heap.Fix(&p.schedule, w.place)
	}
}

// watchHeap is a heap of watches by when they are due.
type watchHeap []*Watch

func (h watchHeap) Len() int           { return len(h) }
func (h watchHeap) Less(i, j int) bool { return h[i].wake < h[j].wake }
func (h watchHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push adds a watch.
func (h *watchHeap) Push(x any) {
	w := x.(*Watch)
	w.place = len(*h)
	*h = append(*h, w)
}

// Pop removes the last watch.
func (h *watchHeap) Pop() any {
	last := (*h)[len(*h)-1]
	last.place = -1
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	return last
}
