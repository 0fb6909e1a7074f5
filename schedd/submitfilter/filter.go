// Package submitfilter has a program of the site look at jobs before a schedd takes them,
// and at what they would become when they are altered. The program may refuse them, and
// may change those that are new.
package submitfilter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/sitescript"
	"github.com/roost-batch/roost/schedd/queue"
)

// The events that a filter sees.
const (
	EventSubmit = "submit"
	EventAlter  = "alter"
)

// documentVersion is the version of the documents that a filter reads and writes.
const documentVersion = 1

// Bounds on what a filter prints.
const (
	maxAnswer  = 16 << 20
	maxRefusal = 1 << 10
)

// Filter is the filter of one schedd. A nil Filter accepts everything.
type Filter struct {
	settings config.SubmitFilter
	node     string
	log      *slog.Logger
	slots    chan struct{}      // programs that run now
	groups   *sitescript.Groups // that contain them
}

// New returns the filter that a node file configures, nil for none. Its programs are
// contained in groups.
func New(node string, settings config.SubmitFilter, groups *sitescript.Groups, log *slog.Logger) *Filter {
	if settings.Program == "" {
		return nil
	}
	return &Filter{settings: settings, node: node, log: log, groups: groups,
		slots: make(chan struct{}, 4*runtime.NumCPU())}
}

// document is what a filter reads on its standard input.
type document struct {
	Version int    `json:"version"`
	Event   string `json:"event"`
	Node    string `json:"node"`
	User    string `json:"user"`
	UID     uint32 `json:"uid"`
	GID     uint32 `json:"gid"`
	Origin  string `json:"submit_node,omitempty"` // with jobs of the cell's queue: where the user is
	Admin   bool   `json:"admin,omitempty"`
	Jobs    []job  `json:"jobs"`
}

type job struct {
	ID      string      `json:"id,omitempty"` // of a job that is altered
	Tasks   int         `json:"tasks"`
	Ad      *classad.Ad `json:"ad"`
	Changes *classad.Ad `json:"changes,omitempty"` // of a job that is altered; null takes an attribute away
}

// answer is what a filter writes on its standard output, or nothing.
type answer struct {
	Version int             `json:"version"`
	Message string          `json:"message"` // for the log
	Jobs    []changesOfAJob `json:"jobs"`
}

type changesOfAJob struct {
	Index   *int        `json:"index"` // in the jobs of the document, from 0
	Changes *classad.Ad `json:"changes"`
}

// FilterSubmission has the filter look at new jobs and change them. An error of kind
// roost.PermissionDenied is its refusal; roost.Unavailable means that it failed.
func (f *Filter) FilterSubmission(ctx context.Context, who queue.CallerIdentity, specs []queue.SubmitSpec) error {
	if f == nil {
		return nil
	}
	d := f.newDocument(EventSubmit, who)
	for i := range specs {
		d.Jobs = append(d.Jobs, job{Tasks: max(specs[i].Count, 1), Ad: specs[i].Ad})
	}
	a, err := f.run(ctx, d)
	if err != nil {
		return err
	}
	changed := make([]*classad.Ad, len(specs)) // nothing is changed unless everything is right
	for _, c := range a.Jobs {
		if c.Index == nil || *c.Index < 0 || *c.Index >= len(specs) {
			return f.failed(fmt.Errorf("its answer changes a job that there is not; indexes go from 0 to %d",
				len(specs)-1))
		}
		if c.Changes == nil {
			continue
		}
		if fixed := queue.FixedAttr(c.Changes); fixed != "" {
			return f.failed(fmt.Errorf("its answer changes %s, which says what a job is", fixed))
		}
		if changed[*c.Index] == nil {
			changed[*c.Index] = specs[*c.Index].Ad.Copy()
		}
		queue.ApplyChanges(changed[*c.Index], c.Changes)
	}
	for i, ad := range changed {
		if ad != nil {
			specs[i].Ad = ad
		}
	}
	return nil
}

// CheckAlteration has the filter look at a job as it would become. It may refuse that,
// with errors as those of [Filter.FilterSubmission], and change nothing.
func (f *Filter) CheckAlteration(ctx context.Context, who queue.CallerIdentity, id string, tasks int,
	after, changes *classad.Ad) error {
	if f == nil {
		return nil
	}
	d := f.newDocument(EventAlter, who)
	d.Jobs = []job{{ID: id, Tasks: tasks, Ad: after, Changes: changes}}
	a, err := f.run(ctx, d)
	if err == nil && len(a.Jobs) > 0 {
		err = f.failed(errors.New("its answer changes a job that is altered: it can only accept or refuse that"))
	}
	return err
}

func (f *Filter) newDocument(event string, who queue.CallerIdentity) document {
	return document{Version: documentVersion, Event: event, Node: f.node, User: who.User, UID: who.UID, GID: who.GID,
		Origin: who.Origin, Admin: who.Admin}
}

// run runs the program with a document, and reads its answer.
func (f *Filter) run(ctx context.Context, d document) (a answer, err error) {
	input, err := json.Marshal(d)
	if err != nil {
		return a, f.failed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.settings.Timeout)
	defer cancel()
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return a, f.failed(fmt.Errorf("too many of it run already: %w", ctx.Err()))
	}
	rights, err := sitescript.UserCredential(f.settings.User)
	if err != nil {
		return a, f.failed(fmt.Errorf("its user: %w", err))
	}
	began := time.Now()
	out, err := sitescript.Run(ctx, sitescript.Script{
		Path: f.settings.Program, Arguments: []string{d.Event}, Input: input, Credential: rights, MaxOutput: maxAnswer,
		Groups:      f.groups,
		Environment: append(sitescript.BaseEnvironment(), "ROOST_NODE="+f.node, "ROOST_EVENT="+d.Event),
	})
	switch {
	case ctx.Err() != nil:
		return a, f.failed(fmt.Errorf("it was not done in %v", f.settings.Timeout))
	case sitescript.ExitCode(err) == 1:
		why := refusalText(out)
		f.log.Info("the submit filter has refused jobs", "user", d.User, "event", d.Event, "why", why)
		return a, fmt.Errorf("the submit filter of %s: %w: %s", f.node, roost.PermissionDenied, why)
	case err != nil:
		return a, f.failed(fmt.Errorf("%w: %s", err, refusalText(out)))
	case out.Truncated:
		return a, f.failed(fmt.Errorf("its answer has more than %d bytes", maxAnswer))
	}
	if text := strings.TrimSpace(string(out.Text)); text != "" {
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return a, f.failed(fmt.Errorf("its answer is not as roost-node(5) describes it: %w", err))
		}
		if a.Version > documentVersion {
			return a, f.failed(fmt.Errorf("its answer has version %d, and this schedd reads version %d", a.Version,
				documentVersion))
		}
	}
	f.log.Debug("the submit filter has accepted jobs", "user", d.User, "event", d.Event, "jobs", len(d.Jobs),
		"changed", len(a.Jobs), "took", time.Since(began), "said", sitescript.OneLine(a.Message))
	return a, nil
}

// failed returns the error for users after a failure of the filter. What it says of the
// failure goes into the log, for the administrator.
func (f *Filter) failed(err error) error {
	f.log.Error("the submit filter has failed, and the jobs were refused", "program", f.settings.Program, "err", err)
	return fmt.Errorf("the submit filter of %s has failed: %w: %w; nothing was done: try again, and tell an "+
		"administrator if it fails again", f.node, roost.Unavailable, err)
}

// refusalText returns what a program that refuses has printed, in one line.
func refusalText(out sitescript.Output) string {
	line := out.Line()
	if len(line) > maxRefusal {
		line = strings.ToValidUTF8(line[:maxRefusal], "") + "…"
	}
	return cmp.Or(line, "it gives no reason")
}
