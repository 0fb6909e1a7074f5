package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// Job is what a submit hands to an outer system.
type Job struct {
	Key      string // the name of the job
	Script   string
	Nodes    int
	Walltime time.Duration
	Margin   time.Duration // before the end of the walltime its pilots get SIGTERM, where that can be
	Node     roost.Resources
	Exclude  []string // hosts
	Directory,
	Output string // an absolute path there
	IsHeld bool // it is a trial, which must not start
}

// System is the interface to one kind of outer system.
type System interface {
	// Submit returns the id that the outer system gives to the job. An error of kind
	// roost.Unavailable means that nobody knows whether it has the job.
	Submit(ctx context.Context, job Job) (id string, err error)
	// Status returns what the outer system says of jobs. Those that it does not know are
	// missing. An error says nothing of any job.
	Status(ctx context.Context, ids []string) (map[string]plan.OuterStatus, error)
	// Cancel ends jobs. Jobs that have ended already are no error.
	Cancel(ctx context.Context, ids []string) error
	// Find returns the id of the job with a name; "" if there is none.
	Find(ctx context.Context, key string) (id string, err error)
	// CanHold reports whether a job can be submitted so that it does not start.
	CanHold() bool
}

// New returns the system of a provider.
func New(s *provider.Settings) (System, error) {
	shell := Shell{Via: s.Via}
	switch s.Kind {
	case provider.Slurm:
		return slurm{shell, s.Options}, nil
	case provider.PBS:
		return pbs{shell, s.Options}, nil
	case provider.Condor:
		return condor{shell, s.Options}, nil
	case provider.GridEngine:
		return gridEngine{shell, s.Options}, nil
	case provider.Command:
		return command{shell, s.Options, s.Programs}, nil
	}
	return nil, fmt.Errorf("provider %s: %w: there is no kind %q", s.Name, roost.BadConfig, s.Kind)
}

// lastLine returns the last line of an output that is not empty. Wrappers of sites print
// advice in front.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// unclearTexts are parts of messages of programs that gave up waiting for their server.
// It may have done what they asked for.
func unclearTexts() []string {
	return []string{"timed out", "timeout", "unable to contact", "connection", "cannot connect", "communication",
		"unable to send message", "broken pipe", "end of file"}
}

// submitError is the error of a program that submits and did not succeed.
func submitError(err error) error {
	var failed *ExitError
	if !errors.As(err, &failed) {
		return err
	}
	text := strings.ToLower(failed.Text)
	for _, part := range unclearTexts() {
		if strings.Contains(text, part) {
			return fmt.Errorf("%w: %w", roost.Unavailable, err)
		}
	}
	return err
}

// checkID returns an id as a program printed it, if it can be one.
func checkID(id string) (string, error) {
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) ||
		strings.HasPrefix(id, "-") {
		return "", fmt.Errorf("%w: the program that submits printed %q, which is no id of a job", roost.Unavailable,
			shorten(id))
	}
	return id, nil
}

func shorten(text string) string {
	if len(text) > 300 {
		return text[:300] + "…"
	}
	return text
}

// sinceElapsed is when something began that has taken so long.
func sinceElapsed(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(-d)
}
