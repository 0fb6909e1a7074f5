package view

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/simchild"
	"github.com/roost-batch/roost/internal/wire"
)

// WhatIfRequest is a change of the pool, in the words of roost sim whatif.
type WhatIfRequest struct {
	Alter     []string `json:"alter,omitempty"`   // "12.n2=cpus:8,band:production"
	Drain     []string `json:"drain,omitempty"`   // nodes
	Undrain   []string `json:"undrain,omitempty"` // nodes
	Remove    []string `json:"remove,omitempty"`  // nodes
	Add       []string `json:"add,omitempty"`     // "n7*4"
	Quota     []string `json:"quota,omitempty"`   // "ann/batch=cpus:8"
	Limit     []string `json:"limit,omitempty"`   // "matlab=20"
	Group     []string `json:"group,omitempty"`   // "physics=400"
	Queue     []string `json:"queue,omitempty"`   // "long=stop"
	Setting   []string `json:"setting,omitempty"` // "reclaim=off"
	Span      string   `json:"span,omitempty"`    // how far to look ahead; 1d by default
	Predicted bool     `json:"predicted,omitempty"`
}

// maxChanges bounds the changes of one question.
const maxChanges = 64

// WhatIfField is a list of changes of one kind.
type WhatIfField struct {
	Name, Label, Example string

	Values []string
}

// Fields lists the changes by kind, for the form.
func (r WhatIfRequest) Fields() []WhatIfField {
	return []WhatIfField{
		{"alter", "A job asks for something else", "12.n2=cpus:8,band:production", r.Alter},
		{"drain", "Drain nodes", "n7", r.Drain}, {"undrain", "Use drained nodes again", "n7", r.Undrain},
		{"remove", "Take nodes away", "n7", r.Remove}, {"add", "Add nodes like one", "n7*4", r.Add},
		{"quota", "Quotas", "ann/batch=cpus:8,memory:64GiB", r.Quota}, {"limit", "Licences", "matlab=20", r.Limit},
		{"group", "Cores of groups", "physics=400", r.Group}, {"queue", "Queues", "long=stop", r.Queue},
		{"setting", "Settings of the cell", "reclaim=off", r.Setting},
	}
}

// flags returns the flags of the command. A value cannot become a flag of its own.
func (r WhatIfRequest) flags() (flags []string, err error) {
	for _, f := range r.Fields() {
		for _, value := range f.Values {
			if len(value) > maxSearchWord || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' }) {
				return nil, fmt.Errorf("%s: %w: it has more than %d characters, or some that cannot be printed", f.Name,
					roost.Invalid, maxSearchWord)
			}
			flags = append(flags, "--"+f.Name+"="+value)
		}
	}
	if len(flags) == 0 || len(flags) > maxChanges {
		return nil, fmt.Errorf("what-if: %w: write 1 to %d changes, as in drain: n7", roost.Invalid, maxChanges)
	}
	if r.Span != "" {
		flags = append(flags, "--span="+r.Span)
	}
	if r.Predicted {
		flags = append(flags, "--predicted")
	}
	return flags, nil
}

// WhatIfResult is the document of roost sim whatif.
type WhatIfResult struct {
	Version int               `json:"v"`
	At      int64             `json:"at"` // unix seconds of the checkpoint
	Before  WhatIfCourse      `json:"before"`
	After   WhatIfCourse      `json:"after"`
	Evicts  []WhatIfEviction  `json:"evicts"`
	Moved   []WhatIfMove      `json:"moved"`
	Drained []WhatIfDrain     `json:"drained"`
	Quotas  []json.RawMessage `json:"quotas"`
	Allowed []string          `json:"allowed"` // jobs that quotas refused and would allow
	Digest  string            `json:"digest"`
}

// Time returns when the checkpoint was taken.
func (r WhatIfResult) Time() time.Time { return time.Unix(r.At, 0) }

// WhatIfCourse is the course of the pool. Times are in seconds from the checkpoint on.
type WhatIfCourse struct {
	Waiting       int      `json:"waiting"`
	Started       int      `json:"started"`
	StartedInHour int      `json:"started_within_an_hour"`
	Evicted       int      `json:"evicted"`
	MeanWait      float64  `json:"mean_wait_seconds"`
	LastStart     *float64 `json:"last_start_seconds"` // null: not in the time that was looked at
	Endless       int      `json:"endless"`
}

// WhatIfEviction is a task that would have to leave at once.
type WhatIfEviction struct {
	Task    string `json:"task"`
	Owner   string `json:"owner"`
	Group   string `json:"group"`
	Band    string `json:"band"`
	Machine string `json:"machine"`
	Why     string `json:"why"`
}

// WhatIfMove are jobs that start at another time.
type WhatIfMove struct {
	Schedd  string   `json:"schedd"`
	Request uint64   `json:"request"`
	Jobs    []string `json:"jobs"`
	Owner   string   `json:"owner"`
	Group   string   `json:"group"`
	Tasks   int      `json:"tasks"`
	Before  *float64 `json:"before_seconds"` // null: not in the time that was looked at
	After   *float64 `json:"after_seconds"`
}

// WhatIfDrain is when a drained node is empty.
type WhatIfDrain struct {
	Node    string   `json:"node"`
	Runs    int      `json:"runs"`
	Unknown int      `json:"unknown"` // tasks whose end nobody knows
	Over    *float64 `json:"over_seconds"`
}

// WhatIfForm is the page of a question and its answer.
type WhatIfForm struct {
	Version int            `json:"v"`
	Request WhatIfRequest  `json:"request"`
	Problem *route.Problem `json:"problem,omitempty"`
	Result  *WhatIfResult  `json:"result,omitempty"`
}

// ShowWhatIf shows the page for a question. The address may have a change already.
func ShowWhatIf(c *route.Call) (any, error) {
	return WhatIfForm{Version: document.Version, Request: whatIfOf(c.QueryValue)}, nil
}

// whatIfOf reads a question from a form. Changes are separated by blanks.
func whatIfOf(value func(string) string) WhatIfRequest {
	list := func(name string) []string { return strings.Fields(value(name)) }
	return WhatIfRequest{Alter: list("alter"), Drain: list("drain"), Undrain: list("undrain"), Remove: list("remove"),
		Add: list("add"), Quota: list("quota"), Limit: list("limit"), Group: list("group"), Queue: list("queue"),
		Setting: list("setting"), Span: strings.TrimSpace(value("span")), Predicted: value("predicted") != ""}
}

// Questioner answers what-if questions.
type Questioner struct{ Simulator simchild.Simulator }

// WhatIf answers a question about the pool as it is now. Nothing changes.
func (q Questioner) WhatIf(c *route.Call) error {
	var body WhatIfRequest
	if err := c.Decode(&body, func(value func(string) string) { body = whatIfOf(value) }); err != nil {
		return err
	}
	text, err := q.ask(c, body)
	var r WhatIfResult
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil {
		c.AsOf = time.Unix(r.At, 0)
		c.Note("digest", r.Digest)
	}
	if c.IsPage {
		form, status := WhatIfForm{Version: document.Version, Request: body, Result: &r}, http.StatusOK
		if err != nil {
			form.Problem, form.Result = route.ProblemOf(err), nil
			status = form.Problem.Status
		}
		return c.ShowPage(status, "whatif", form)
	}
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, json.RawMessage(text))
}

func (q Questioner) ask(c *route.Call, body WhatIfRequest) ([]byte, error) {
	flags, err := body.flags()
	if err != nil {
		return nil, err
	}
	checkpoint, err := checkpointCell(c)
	if err != nil {
		return nil, err
	}
	return q.Simulator.WhatIf(c.Context(), checkpoint, flags)
}

// maxCellCheckpoint bounds a checkpoint of a cell, packed. One of 10,000 machines and
// 100,000 jobs has a few MiB.
const maxCellCheckpoint = 64 << 20

// checkpointCell asks for a checkpoint of the cell, which every user may read.
func checkpointCell(c *route.Call) ([]byte, error) {
	var text bytes.Buffer
	err := ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		stream, err := s.CheckpointCell(ctx, &wire.CheckpointCellRequest{})
		return drain(stream, err, func(piece *wire.CheckpointPiece) error {
			if text.Len()+len(piece.GetData()) > maxCellCheckpoint {
				return fmt.Errorf("checkpoint of the cell: %w: it has more than %v: use roost sim whatif",
					roost.Exhausted, roost.Bytes(maxCellCheckpoint))
			}
			text.Write(piece.GetData())
			return nil
		})
	})
	return text.Bytes(), err
}
