package jobhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sitescript"
	"github.com/roost-batch/roost/internal/spool"
)

// The events that a program sees, and its argument.
const (
	eventStart = "start"
	eventEnd   = "end"
)

// documentVersion is the version of the documents that a program reads.
const documentVersion = 1

// maxText bounds what is shown of what a program prints, in bytes.
const maxText = 1 << 10

// Runner runs the hooks of one schedd. A nil Runner has none. Its methods are safe for
// concurrent use, but for EnqueueEnds.
type Runner struct {
	settings config.JobHooks
	node     string
	log      *slog.Logger
	groups   *sitescript.Groups // that contain the programs
	starting chan struct{}      // programs at starts that run now
	ending   chan struct{}      // likewise, at ends
	spool    *spool.Spool[Ended]
	wake     chan struct{}

	mu      sync.Mutex
	pending int          // ends in the spool
	arrived []*queuedEnd // that were never tried
	retries [len(endWaits)][]*queuedEnd
}

// Attempt is what a program is told of an attempt.
type Attempt struct {
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	Job     string `json:"job"`
	Index   int    `json:"index"`
	Name    string `json:"name,omitempty"`
	Queue   string `json:"queue,omitempty"`
	Account string `json:"account,omitempty"`
	User    string `json:"user"`
	UID     uint32 `json:"uid"`
	GID     uint32 `json:"gid"`
	Machine string `json:"machine"`
}

// Ended is an attempt that has ended.
type Ended struct {
	Attempt
	Lost  string         `json:"lost,omitempty"` // why nobody knows how it ended
	Exit  *document.Exit `json:"exit,omitempty"` // nil: it was lost
	State string         `json:"state"`          // of the task, afterwards
	Time  string         `json:"time"`
}

// inputHead is the beginning of the document that a program reads on its standard input.
type inputHead struct {
	Version int    `json:"version"`
	Event   string `json:"event"`
	Node    string `json:"node"`
}

type startInput struct {
	inputHead
	Attempt
	Ad *classad.Ad `json:"ad"`
}

type endInput struct {
	inputHead
	*Ended
}

// Open returns the hooks that a node file configures, nil for none. It reads from a
// directory the ends that an earlier run has not seen through.
func Open(node string, settings config.JobHooks, dir string, groups *sitescript.Groups,
	log *slog.Logger) (*Runner, error) {
	if settings == (config.JobHooks{}) {
		return nil, nil
	}
	r := &Runner{settings: settings, node: node, log: log, groups: groups, wake: make(chan struct{}, 1),
		starting: make(chan struct{}, settings.AtOnce), ending: make(chan struct{}, settings.AtOnce)}
	if settings.End == "" {
		return r, nil
	}
	opened, left, err := spool.Open[Ended](dir)
	if opened == nil {
		return nil, err
	}
	if err != nil {
		log.Error("the end hook is not run for some attempts", "err", err)
	}
	r.spool, r.pending = opened, len(left)
	for _, e := range left {
		r.arrived = append(r.arrived, &queuedEnd{entry: e})
	}
	return r, nil
}

// HasStart reports whether a program is run at starts.
func (r *Runner) HasStart() bool { return r != nil && r.settings.Start != "" }

// HasEnd reports whether a program is run at ends.
func (r *Runner) HasEnd() bool { return r != nil && r.settings.End != "" }

// Decision is what becomes of an attempt that is to start.
type Decision uint8

// The decisions, and the exit statuses of the program that stand for the first three.
const (
	Accept Decision = iota
	Refuse          // its task fails
	Hold            // its task is held
	Failed          // the program has failed
)

// Verdict is what the program at a start has said.
type Verdict struct {
	Decision Decision
	Reason   string // empty for Accept
}

// startWaits is how long Start waits before it runs a program again that has failed.
var startWaits = []time.Duration{2 * time.Second, 10 * time.Second}

// Start runs the program for an attempt, and calls report with the verdict. It does not
// wait for that. After ctx has ended report is not called. The ad is the text of that of
// the job.
func (r *Runner) Start(ctx context.Context, a Attempt, ad func() string, report func(Verdict)) {
	go func() {
		verdict := Verdict{Decision: Failed}
		for tries := 0; ; tries++ {
			verdict = r.runStart(ctx, a, ad)
			if ctx.Err() != nil {
				return
			}
			if verdict.Decision != Failed || tries == len(startWaits) {
				break
			}
			r.log.Warn("the start hook has failed and is run again", "task", a.Task, "err", verdict.Reason)
			select {
			case <-time.After(startWaits[tries]):
			case <-ctx.Done():
				return
			}
		}
		if verdict.Decision != Accept {
			r.log.Warn("the start hook has not let a task start", "task", a.Task, "user", a.User,
				"why", verdict.Reason)
		}
		report(verdict)
	}()
}

// runStart runs the program once, when it is its turn.
func (r *Runner) runStart(ctx context.Context, a Attempt, ad func() string) Verdict {
	select {
	case r.starting <- struct{}{}:
		defer func() { <-r.starting }()
	case <-ctx.Done():
		return Verdict{Decision: Failed}
	}
	parsed, err := classad.Parse(ad())
	if err != nil {
		return r.failed(err)
	}
	out, err := r.run(ctx, r.settings.Start, eventStart, a.Task, startInput{r.head(eventStart), a, parsed})
	switch code := sitescript.ExitCode(err); {
	case err == nil:
		return Verdict{}
	case code == int(Refuse):
		return Verdict{Refuse, fmt.Sprintf("the start hook of %s refused it: %s", r.node, shown(out))}
	case code == int(Hold):
		return Verdict{Hold, fmt.Sprintf("the start hook of %s: %s", r.node, shown(out))}
	}
	return r.failed(fmt.Errorf("%w: %s", err, shown(out)))
}

func (r *Runner) failed(err error) Verdict {
	return Verdict{Failed, fmt.Sprintf("the start hook of %s has failed: %v", r.node, err)}
}

func (r *Runner) head(event string) inputHead { return inputHead{documentVersion, event, r.node} }

// run runs a program with a document.
func (r *Runner) run(ctx context.Context, path, event, task string, d any) (sitescript.Output, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return sitescript.Output{}, err
	}
	rights, err := sitescript.UserCredential(r.settings.User)
	if err != nil {
		return sitescript.Output{}, fmt.Errorf("its user: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.settings.Timeout,
		fmt.Errorf("%w: it was not done in %v", roost.Unavailable, r.settings.Timeout))
	defer cancel()
	out, err := sitescript.Run(ctx, sitescript.Script{
		Path: path, Arguments: []string{event}, Input: append(text, '\n'), Credential: rights, MaxOutput: maxText,
		Groups: r.groups,
		Environment: append(sitescript.BaseEnvironment(), "ROOST_NODE="+r.node, "ROOST_EVENT="+event,
			"ROOST_TASK_ID="+task),
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause // and not the exit status of what was killed
	}
	return out, err
}

// shown returns what a program has printed, in one line.
func shown(out sitescript.Output) string { return cmp.Or(out.Line(), "it printed nothing") }
