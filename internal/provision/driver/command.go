package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/plan"
)

// command is an outer system behind four programs of the user. Each reads one JSON
// document from its standard input and prints one; roost-pilots(5) describes them.
type command struct {
	Shell
	options  []string
	programs map[string][]string
}

// commandVersion is the version of the documents.
const commandVersion = 1

// submitDocument is what the program submit reads.
type submitDocument struct {
	Version  int      `json:"version"`
	Key      string   `json:"key"`
	Script   string   `json:"script"`
	Nodes    int      `json:"nodes"`
	Walltime int64    `json:"walltime_seconds"`
	Margin   int64    `json:"margin_seconds"`
	CPUs     float64  `json:"cpus,omitempty"`
	Memory   int64    `json:"memory_bytes,omitempty"`
	Disk     int64    `json:"disk_bytes,omitempty"`
	GPUs     int      `json:"gpus,omitempty"`
	Output   string   `json:"output"`
	Hold     bool     `json:"hold"`
	Exclude  []string `json:"exclude,omitempty"`
	Options  []string `json:"options,omitempty"`
}

// idsDocument is what the programs status and cancel read.
type idsDocument struct {
	Version int      `json:"version"`
	IDs     []string `json:"ids"`
}

// factsDocument is what the program facts reads.
type factsDocument struct {
	Version int    `json:"version"`
	Key     string `json:"key"`
}

// answerDocument is what the programs print. Each prints the fields that it has.
type answerDocument struct {
	ID    string `json:"id"`
	Error string `json:"error"`
	Hold  *bool  `json:"hold"`
	Jobs  map[string]struct {
		State   string   `json:"state"`
		Text    string   `json:"text"`
		Hosts   []string `json:"hosts"`
		Running float64  `json:"running_seconds"`
	} `json:"jobs"`
}

// call runs one of the programs.
func (c command) call(ctx context.Context, verb string, document any) (*answerDocument, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	out, err := c.Run(ctx, verb, withInput(quoteAll(c.programs[verb]), string(text)))
	if err != nil {
		return nil, err
	}
	answer := &answerDocument{}
	if strings.TrimSpace(out) == "" {
		return answer, nil
	}
	if err := json.Unmarshal([]byte(out), answer); err != nil {
		return nil, fmt.Errorf("program %s: %w: it printed no JSON: %w: %s", verb, roost.Unavailable, err, shorten(out))
	}
	if answer.Error != "" {
		return nil, &ExitError{verb, 0, answer.Error}
	}
	return answer, nil
}

func (c command) Submit(ctx context.Context, job Job) (string, error) {
	answer, err := c.call(ctx, "submit", submitDocument{commandVersion, job.Key, job.Script, job.Nodes,
		int64(job.Walltime.Seconds()), int64(job.Margin.Seconds()), job.Node.CPU.Cores(), int64(job.Node.Memory),
		int64(job.Node.Disk), job.Node.GPUs, job.Output, job.IsHeld, job.Exclude, c.options})
	if err != nil {
		return "", submitError(err)
	}
	return checkID(answer.ID)
}

func (c command) Status(ctx context.Context, ids []string) (map[string]plan.OuterStatus, error) {
	answer, err := c.call(ctx, "status", idsDocument{commandVersion, ids})
	if err != nil {
		return nil, err
	}
	answers := map[string]plan.OuterStatus{}
	for id, j := range answer.Jobs {
		s := plan.OuterStatus{ID: id, Text: j.Text, Hosts: j.Hosts}
		switch j.State {
		case "queued":
		case "running":
			s.State, s.Started = plan.OuterRunning, sinceElapsed(time.Duration(j.Running*float64(time.Second)))
		case "ended":
			s.State = plan.OuterEnded
		default:
			return nil, fmt.Errorf("program status: %w: job %s has the state %q: it is queued, running or ended",
				roost.Unavailable, id, shorten(j.State))
		}
		answers[id] = s
	}
	return answers, nil
}

func (c command) Cancel(ctx context.Context, ids []string) error {
	_, err := c.call(ctx, "cancel", idsDocument{commandVersion, ids})
	return err
}

func (c command) Find(ctx context.Context, key string) (string, error) {
	answer, err := c.call(ctx, "facts", factsDocument{commandVersion, key})
	if err != nil || answer.ID == "" {
		return "", err
	}
	return checkID(answer.ID)
}

// CanHold reports true: the program is told so, and a job that starts all the same is
// cancelled at once.
func (c command) CanHold() bool { return true }
