package userlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue"
)

// FlowFiles writes the files that show how flows go: the node status file and the
// pictures of each. A version replaces the one before as a whole. Its zero value is not
// usable.
type FlowFiles struct {
	agents  Agents
	log     *slog.Logger
	capture func(ctx context.Context, seq uint64) *queue.FlowCapture // nil: there is no such flow

	mu   sync.Mutex
	rows map[uint64]*reportRow
	wake chan struct{}
}

// reportRow is what is known of the files of a flow.
type reportRow struct {
	changed  bool // since the flow was captured
	begun    bool // a first version of all files is there
	resumed  bool // the flow had begun before the schedd did
	always   bool // the flow is captured at next also without a change
	busy     bool
	next     time.Time          // not before then
	last     *queue.FlowCapture // the flow has ended so; nil: it goes on
	tries    int
	versions map[string]int // of numbered pictures, by file
}

// The shortest times between two versions of the files of a flow.
const (
	minReportInterval = time.Second
	nodesPerSecond    = 50_000 // of a large flow
	reportTimeout     = time.Minute
)

// NewFlowFiles returns a writer that writes nothing before Run.
func NewFlowFiles(agents Agents, log *slog.Logger,
	capture func(ctx context.Context, seq uint64) *queue.FlowCapture) *FlowFiles {
	return &FlowFiles{agents: agents, log: log, capture: capture, rows: map[uint64]*reportRow{},
		wake: make(chan struct{}, 1)}
}

// Change says that the files of a flow show otherwise.
func (f *FlowFiles) Change(seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.row(seq)
	if r.changed, r.last = true, nil; !r.begun && !r.busy {
		f.signal()
	}
}

// Resume is Change for a flow that had begun before the schedd did.
func (f *FlowFiles) Resume(seq uint64) {
	f.mu.Lock()
	f.row(seq).resumed = true
	f.mu.Unlock()
	f.Change(seq)
}

// Finish has the last version of the files of a flow written, which has ended.
func (f *FlowFiles) Finish(c *queue.FlowCapture) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.row(c.Seq)
	r.changed, r.last, r.next, r.tries = true, c, time.Time{}, 0
	f.signal()
}

func (f *FlowFiles) row(seq uint64) *reportRow {
	r := f.rows[seq]
	if r == nil {
		r = &reportRow{versions: map[string]int{}}
		f.rows[seq] = r
	}
	return r
}

func (f *FlowFiles) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends.
func (f *FlowFiles) Run(ctx context.Context) {
	tick := time.NewTicker(minReportInterval)
	defer tick.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	free := make(chan struct{}, writers)
	for {
		for seq, r := f.take(time.Now()); r != nil; seq, r = f.take(time.Now()) {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return
			}
			all.Go(func() {
				f.report(ctx, seq, r)
				<-free
			})
		}
		select {
		case <-f.wake:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// take returns a flow whose files are due.
func (f *FlowFiles) take(now time.Time) (seq uint64, r *reportRow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for seq, r := range f.rows {
		if (r.changed || r.always) && !r.busy && !now.Before(r.next) {
			r.busy, r.changed = true, false
			return seq, r
		}
	}
	return 0, nil
}

// report writes the files of a flow. Those that cannot be written are tried again later.
func (f *FlowFiles) report(ctx context.Context, seq uint64, r *reportRow) {
	f.mu.Lock()
	c, begun := r.last, r.begun
	f.mu.Unlock()
	if c == nil {
		c = f.capture(ctx, seq)
	}
	var err error
	if c != nil {
		err = f.write(ctx, c, r, begun)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r.busy = false
	switch {
	case c == nil:
		if !r.changed {
			delete(f.rows, seq)
		}
	case err != nil && ctx.Err() == nil:
		if r.tries++; r.tries < maxTries {
			r.changed, r.next = true, time.Now().Add(retryWait<<r.tries)
			return
		}
		f.log.Warn("a file that shows how a flow goes cannot be written", "flow", seq, "uid", c.UID, "error", err)
		r.tries, r.begun = 0, true
		fallthrough
	default:
		r.begun, r.always, r.next = true, c.Plan.Reports.Status.IsAlways, time.Now().Add(reportInterval(c))
		if c.Phase == flow.Ended && !r.changed {
			delete(f.rows, seq)
		}
	}
}

// reportInterval is how long a version stays at least.
func reportInterval(c *queue.FlowCapture) time.Duration {
	least := minReportInterval + time.Duration(len(c.States)/nodesPerSecond)*time.Second
	for _, d := range c.Plan.Reports.Dots {
		if d.IsUpdated {
			return least
		}
	}
	return max(least, time.Duration(c.Plan.Reports.Status.MinInterval)*time.Second)
}

// write writes the files of a flow. With begun there is a version of each.
func (f *FlowFiles) write(ctx context.Context, c *queue.FlowCapture, r *reportRow, begun bool) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	a, err := f.agents.Agent(c.UID, c.GID)
	if err != nil {
		return err
	}
	var errs []error
	if s := c.Plan.Reports.Status; s.Name != "" {
		base, name := filepath.Split(s.Name)
		errs = append(errs, replaceFile(ctx, a, base, name, func(w io.Writer) error { return writeStatus(w, c) }))
	}
	for i := range c.Plan.Reports.Dots {
		errs = append(errs, writeDot(ctx, a, c, &c.Plan.Reports.Dots[i], r, begun))
	}
	err = errors.Join(errs...)
	if errors.Is(err, roost.Unavailable) || errors.Is(err, context.DeadlineExceeded) {
		f.agents.DropAgent(c.UID, c.GID)
	}
	return err
}

// writeDot writes a picture. One that is not updated is written when the flow begins.
func writeDot(ctx context.Context, a *userfiles.Agent, c *queue.FlowCapture, d *plan.DotFile, r *reportRow,
	begun bool) error {
	base, name := filepath.Split(d.Name)
	if !d.IsUpdated {
		if begun || r.resumed && d.Numbered {
			return nil
		}
		if _, err := a.Stat(ctx, base, name); err == nil && r.resumed {
			return nil
		}
	}
	if d.Numbered {
		first := name
		for number := r.versions[d.Name]; ; number++ {
			name = fmt.Sprintf("%s.%d", first, number)
			if _, err := a.Stat(ctx, base, name); errors.Is(err, roost.NoInput) {
				r.versions[d.Name] = number + 1
				break
			} else if err != nil {
				return err
			}
		}
	}
	return replaceFile(ctx, a, base, name, func(w io.Writer) error { return writePicture(w, c, d) })
}
