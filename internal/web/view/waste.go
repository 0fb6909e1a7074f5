package view

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// Waste compares what the jobs of each user and name asked for with what they used.
type Waste struct {
	Version int         `json:"v"`
	Since   string      `json:"since"`
	Until   string      `json:"until"`
	Waste   []WasteLine `json:"waste"`

	Filter UsageFilter `json:"-"`
}

// WasteLine is one user and name, as the report waste has them.
type WasteLine struct {
	Owner       string  `json:"owner"`
	Name        string  `json:"name"`
	Attempts    int64   `json:"attempts"`
	CoreHours   float64 `json:"core_hours"` // held
	CPUHours    float64 `json:"cpu_hours"`  // used
	IdleHours   float64 `json:"idle_core_hours"`
	MemoryHours float64 `json:"memory_gib_hours"` // held
	PeakHours   float64 `json:"peak_gib_hours"`   // if each peak had lasted
	Memory      int64   `json:"memory_bytes"`     // asked for last
	Peak        int64   `json:"peak_bytes"`       // of those that succeeded
	// what to request next time, in the words of roost show; empty: nothing else
	Hint string `json:"hint,omitempty"`
	// the memory of that advice; 0: it is right
	Suggested int64 `json:"suggested_memory_bytes,omitempty"`

	// of the page: the user's own waiting jobs of that name that ask for too much or too
	// little memory
	Waiting []string `json:"-"`
}

// Resources is what the waiting jobs should ask for, as of qalter -l.
func (l *WasteLine) Resources() string { return fmt.Sprintf("mem=%dmb", l.Suggested>>20) }

// maxWasteLines bounds the lines of the page.
const maxWasteLines = 200

// ShowWaste shows where more was asked for than used. Without all it is about the user's
// own jobs.
func ShowWaste(c *route.Call) (any, error) {
	f, q, err := usageQuery(c, time.Now())
	if err != nil {
		return nil, err
	}
	q.Report, q.By, q.Limit = query.Waste, nil, maxWasteLines
	w := Waste{Version: document.Version, Filter: f, Waste: []WasteLine{},
		Since: document.Timestamp(int64(q.From) * 1e6), Until: document.Timestamp(int64(q.To) * 1e6)}
	lines, err := askAccounts[query.WasteLine](c, q, reportPatience)
	for i := range lines {
		w.Waste = append(w.Waste, wasteLineOf(&lines[i]))
	}
	if err == nil && c.IsPage {
		err = w.addWaiting(c)
	}
	return w, err
}

// addWaiting adds the waiting jobs that the advice of a line is about.
func (w *Waste) addWaiting(c *route.Call) error {
	advised := map[string]*WasteLine{}
	for i := range w.Waste {
		if l := &w.Waste[i]; l.Suggested > 0 && l.Owner == c.Session.User {
			advised[l.Name] = l
		}
	}
	if len(advised) == 0 {
		return nil
	}
	mine := &wire.Selection{Mine: true, States: []string{roost.Idle.String(), roost.Held.String()}}
	query := &wire.PoolQuery{Query: &wire.QueryRequest{Selection: mine, Limit: maxWaiting}}
	_, err := queryPool(c, query, func(s *wire.JobStatus) error {
		l := advised[s.GetName()]
		if l != nil && len(l.Waiting) < maxAltered && !runsNow(s) && s.GetRequest().GetMemory() == l.Memory {
			l.Waiting = append(l.Waiting, s.GetId())
		}
		return nil
	})
	return err
}

// maxWaiting bounds the waiting jobs that are looked at for the page.
const maxWaiting = 1000

func wasteLineOf(l *query.WasteLine) WasteLine {
	const mibSeconds = 1024 * 3600 // of a GiB hour
	line := WasteLine{
		Owner: l.Owner, Name: l.Name, Attempts: l.Attempts, CoreHours: float64(l.HeldCPU) / millisAnHour,
		CPUHours: float64(l.UsedCPU) / millisAnHour, IdleHours: float64(l.Idle) / millisAnHour,
		MemoryHours: float64(l.HeldMem) / mibSeconds, PeakHours: float64(l.PeakMem) / mibSeconds, Memory: l.Memory,
		Peak: l.Peak,
	}
	if l.Succeeded > 0 {
		asked, peak, tasks := roost.Bytes(l.Memory), roost.Bytes(l.Peak), int(min(l.Succeeded, 1<<31-1))
		line.Hint = document.MemoryHint(asked, peak, tasks)
		line.Suggested = int64(document.SuggestedBytes(asked, peak, tasks))
	}
	return line
}
