package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
)

// Problem is an error as RFC 9457 has it, with the kind of Roost's errors and what to do.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Kind   string `json:"kind"`
	Cure   string `json:"cure,omitempty"`

	RetryAfter  int    `json:"retry_after_seconds,omitempty"`
	Diagnostics any    `json:"diagnostics,omitempty"` // mistakes in a job file, with their places
	Text        string `json:"text,omitempty"`        // these as roost submit prints them
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// kindNames are the kinds as documents name them, with their HTTP status.
var kindNames = map[roost.ErrorKind]struct {
	name   string
	status int
}{
	roost.Internal: {"internal", http.StatusInternalServerError}, roost.Invalid: {"invalid", http.StatusBadRequest},
	roost.NotFound: {"not-found", http.StatusNotFound}, roost.Finished: {"finished", http.StatusConflict},
	roost.Conflict: {"conflict", http.StatusConflict}, roost.PermissionDenied: {"permission-denied",
		http.StatusForbidden},
	roost.Unauthenticated: {"unauthenticated", http.StatusUnauthorized},
	roost.Exhausted:       {"exhausted", http.StatusTooManyRequests},
	roost.Unavailable:     {"unavailable", http.StatusServiceUnavailable},
	roost.NoInput:         {"no-input", http.StatusNotFound}, roost.NoOutput: {"no-output",
		http.StatusInsufficientStorage},
	roost.BadConfig: {"bad-configuration", http.StatusInternalServerError},
	roost.Usage:     {"usage", http.StatusBadRequest}, roost.Stale: {"stale", http.StatusConflict},
}

// NewProblem makes a problem of a status without a kind of Roost's own.
func NewProblem(status int, detail, cure string) *Problem {
	title := http.StatusText(status)
	name := strings.ReplaceAll(strings.ToLower(title), " ", "-")
	return &Problem{Type: problemType(name), Title: title, Status: status, Detail: detail, Kind: name, Cure: cure}
}

func problemType(name string) string { return "urn:roost:problem:" + name }

// hintError is an error that has a line about what to do.
type hintError interface{ Hint() string }

// ProblemOf converts an error. Errors without a kind are bugs, and their text is for the
// log alone.
func ProblemOf(err error) *Problem {
	var ready *Problem
	if errors.As(err, &ready) {
		return ready
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes",
			large.Limit), "send less, or in parts")
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: there was no answer in time: %w", roost.Unavailable, err)
	}
	err = received(err)
	kind := rpc.KindOf(err)
	of, known := kindNames[kind]
	if !known {
		kind, of = roost.Internal, kindNames[roost.Internal]
	}
	p := &Problem{Type: problemType(of.name), Title: kind.Error(), Status: of.status, Detail: err.Error(),
		Kind: of.name}
	if kind == roost.Internal {
		p.Detail = "the web daemon has failed; its log says more"
	}
	var hinted hintError
	switch {
	case errors.As(err, &hinted):
		p.Cure = hinted.Hint()
	case kind == roost.Unauthenticated:
		p.Cure = "log in again: roost web login, or roost web token add"
	case kind == roost.Unavailable:
		p.Cure, p.RetryAfter = "try again in a moment", 2
	}
	return p
}

// KindName returns the name of a kind in documents; empty: it has none.
func KindName(kind roost.ErrorKind) string { return kindNames[kind].name }

// KindStatus returns the HTTP status of a kind by its name.
func KindStatus(name string) int {
	for _, of := range kindNames {
		if of.name == name {
			return of.status
		}
	}
	return http.StatusConflict
}

// received converts an error of gRPC, unless that was done: the conversion loses the kind
// the second time.
func received(err error) error {
	var kind roost.ErrorKind
	if errors.As(err, &kind) {
		return err
	}
	return rpc.FromStatus(err)
}

// writeProblem answers with a problem.
func writeProblem(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	setRetryAfter(h, p)
	text, err := json.Marshal(p)
	if err != nil { // it has only texts and numbers
		panic(err)
	}
	w.WriteHeader(p.Status)
	w.Write(append(text, '\n'))
}

func setRetryAfter(h http.Header, p *Problem) {
	if p.RetryAfter > 0 {
		h.Set("Retry-After", fmt.Sprint(p.RetryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="roost"`)
	}
}
