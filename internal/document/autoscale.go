package document

import (
	"fmt"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Autoscale is how the number of tasks of a service follows its load.
type Autoscale struct {
	Min      uint32        `json:"min"`
	Max      uint32        `json:"max"`
	Source   string        `json:"source"` // metric, cpu, memory or waiting
	What     string        `json:"what,omitempty"`
	Target   float64       `json:"target"`
	Wanted   uint32        `json:"wanted"`
	Average  float64       `json:"average"`
	Measured uint32        `json:"measured"`
	Missing  uint32        `json:"missing"`
	Unready  uint32        `json:"unready"`
	Reason   string        `json:"reason,omitempty"`
	Problem  string        `json:"problem,omitempty"`
	At       string        `json:"at,omitempty"`
	Changes  []ScaleChange `json:"changes"`
	Changed  string        `json:"changed,omitempty"`
}

// ScaleChange is a change of the number of tasks of a service.
type ScaleChange struct {
	At   string `json:"at"`
	From uint32 `json:"from"`
	To   uint32 `json:"to"`
}

// AutoscaleOf returns how the number of tasks of a service follows its load; nil where it
// does not.
func AutoscaleOf(m *scheddapi.AutoscaleStatus) *Autoscale {
	if m == nil {
		return nil
	}
	a := &Autoscale{Min: m.GetMin(), Max: m.GetMax(), Source: m.GetSource(), What: m.GetWhat(), Target: m.GetTarget(),
		Wanted: m.GetWanted(), Average: m.GetAverage(), Measured: m.GetMeasured(), Missing: m.GetMissing(),
		Unready: m.GetUnready(), Reason: m.GetReason(), Problem: m.GetProblem(), At: Timestamp(m.GetAt()),
		Changes: []ScaleChange{}, Changed: m.GetChanged()}
	for _, c := range m.GetChanges() {
		a.Changes = append(a.Changes, ScaleChange{Timestamp(c.GetAt()), c.GetFrom(), c.GetTo()})
	}
	return a
}

// Text says by what the service is scaled, and between what bounds.
func (a *Autoscale) Text() string {
	by := map[string]string{
		"metric":  fmt.Sprintf("%s, %g for each", PrintableText(a.What), a.Target),
		"cpu":     fmt.Sprintf("use of cores, %.0f%%", 100*a.Target),
		"memory":  fmt.Sprintf("use of memory, %.0f%%", 100*a.Target),
		"waiting": fmt.Sprintf("waiting tasks of %s, %g for each", PrintableText(a.What), a.Target)}[a.Source]
	return fmt.Sprintf("%d to %d tasks by %s", a.Min, a.Max, by)
}
