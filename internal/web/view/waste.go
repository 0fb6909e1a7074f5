package view

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
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
}

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
	return w, err
}

func wasteLineOf(l *query.WasteLine) WasteLine {
	const mibSeconds = 1024 * 3600 // of a GiB hour
	line := WasteLine{
		Owner: l.Owner, Name: l.Name, Attempts: l.Attempts, CoreHours: float64(l.HeldCPU) / millisAnHour,
		CPUHours: float64(l.UsedCPU) / millisAnHour, IdleHours: float64(l.Idle) / millisAnHour,
		MemoryHours: float64(l.HeldMem) / mibSeconds, PeakHours: float64(l.PeakMem) / mibSeconds, Memory: l.Memory,
		Peak: l.Peak,
	}
	if l.Succeeded > 0 {
		line.Hint = document.MemoryHint(roost.Bytes(l.Memory), roost.Bytes(l.Peak), int(min(l.Succeeded, 1<<31-1)))
	}
	return line
}
