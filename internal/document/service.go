package document

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Service is how the tasks of a service are, or one of them.
type Service struct {
	Wanted uint32            `json:"wanted"`
	States map[string]uint32 `json:"states"`
	Checks []Check           `json:"checks"`

	Autoscale *Autoscale `json:"autoscale,omitempty"` // where its number of tasks follows its load
	// where the size of its tasks follows their use
	VerticalAutoscale *VerticalAutoscale `json:"vertical_autoscale,omitempty"`

	// of one task
	State     string `json:"state,omitempty"`
	Since     string `json:"since,omitempty"`
	Check     string `json:"check,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Restarts  uint32 `json:"restarts,omitempty"`
	EarlyEnds uint32 `json:"early_ends,omitempty"`
	RestartAt string `json:"restart_at,omitempty"`
	Revision  uint32 `json:"revision,omitempty"`
}

// Check is a health check of a service, and of one task how it ends.
type Check struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	For      string  `json:"for"` // ready or live
	Port     string  `json:"port,omitempty"`
	Every    float64 `json:"every"` // in seconds
	Result   string  `json:"result,omitempty"`
	Since    string  `json:"since,omitempty"`
	Failures uint32  `json:"failures,omitempty"`
	Detail   string  `json:"detail,omitempty"`
	Untold   uint32  `json:"untold,omitempty"`  // runs in a row since then that said nothing
	Trouble  string  `json:"trouble,omitempty"` // why the last of them said nothing
}

// ServiceOf returns how a service is; nil for a job that is none.
func ServiceOf(h *scheddapi.ServiceHealth) *Service {
	if h == nil {
		return nil
	}
	s := &Service{Wanted: h.GetWanted(), States: h.GetStates(), Checks: []Check{}, State: h.GetState(),
		Since: Timestamp(h.GetSince()), Check: h.GetCheck(), Detail: h.GetDetail(), Restarts: h.GetRestarts(),
		EarlyEnds: h.GetEarlyEnds(), RestartAt: Timestamp(h.GetRestartAt()), Revision: h.GetRevision(),
		Autoscale: AutoscaleOf(h.GetAutoscale()), VerticalAutoscale: VerticalAutoscaleOf(h.GetVertical())}
	if s.States == nil {
		s.States = map[string]uint32{}
	}
	for _, c := range h.GetChecks() {
		s.Checks = append(s.Checks, checkOf(c))
	}
	return s
}

func checkOf(c *scheddapi.CheckResult) Check {
	d := Check{Name: c.GetName(), Kind: c.GetKind(), For: "ready", Port: c.GetPort(),
		Every: time.Duration(c.GetEvery()).Seconds(), Result: c.GetResult(), Since: Timestamp(c.GetSince()),
		Failures: c.GetFailures(), Detail: c.GetDetail(), Untold: c.GetUntold(), Trouble: c.GetTrouble()}
	if c.GetLive() {
		d.For = "live"
	}
	return d
}

// Text says in a few words what a check asks and how often.
func (c Check) Text() string {
	parts := []string{c.Kind}
	if c.Port != "" {
		parts[0] += " on port " + c.Port
	}
	if c.For != "ready" {
		parts = append(parts, "for "+c.For)
	}
	return strings.Join(append(parts, fmt.Sprintf("every %gs", c.Every)), ", ")
}

// ResultText says how the runs of a check end: "failed 3 times: connection refused". Of
// runs that say nothing it says why.
func (c Check) ResultText() string {
	text := c.Result
	switch {
	case text == "":
		text = "no result yet"
	case c.Failures == 1:
		text += " once"
	case c.Failures > 1:
		text += fmt.Sprintf(" %d times", c.Failures)
	}
	if c.Detail != "" {
		text += ": " + PrintableText(c.Detail)
	}
	switch trouble := PrintableText(c.Trouble); {
	case c.Trouble == "":
	case c.Result == "":
		text += ": " + trouble
	case c.Untold == 1:
		text += "; the last run gave no result: " + trouble
	default:
		text += fmt.Sprintf("; the last %d runs gave no result: %s", c.Untold, trouble)
	}
	return text
}

// serviceStates are the states of a service's tasks, the best first.
var serviceStates = []string{"ready", "starting", "unready", "leaving", "lost", "waiting", "absent"}

// ServiceState is a number of tasks in one state.
type ServiceState struct {
	Name  string
	Tasks uint32
}

// Counts lists how many tasks are in each state, the best state first. States without
// tasks are left out.
func (s *Service) Counts() (list []ServiceState) {
	for _, name := range serviceStates {
		if n := s.States[name]; n > 0 {
			list = append(list, ServiceState{name, n})
		}
	}
	return list
}

// Text says in a line how the tasks are: "2 of 3 ready, 1 waiting for its restart".
func (s *Service) Text() string {
	parts := []string{fmt.Sprintf("%d of %d ready", s.States["ready"], s.Wanted)}
	for _, c := range s.Counts() {
		switch c.Name {
		case "ready":
		case "waiting":
			parts = append(parts, fmt.Sprintf("%d waiting for a restart", c.Tasks))
		case "absent":
			parts = append(parts, fmt.Sprintf("%d not started", c.Tasks))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", c.Tasks, c.Name))
		}
	}
	return strings.Join(parts, ", ")
}

// IsAsWanted reports whether all tasks that are to run are ready.
func (s *Service) IsAsWanted() bool { return s.Wanted > 0 && s.States["ready"] == s.Wanted }
