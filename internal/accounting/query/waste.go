package query

import (
	"cmp"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// WasteLine compares what the ended attempts of jobs with the same owner and name asked
// for with what they used.
type WasteLine struct {
	Owner     string `json:"owner"`
	Name      string `json:"name"`
	Attempts  int64  `json:"attempts"`
	HeldCPU   int64  `json:"held_cpu"` // core-milliseconds, as the next two
	UsedCPU   int64  `json:"used_cpu"`
	Idle      int64  `json:"idle_cpu"`  // held and not used
	HeldMem   int64  `json:"held_mem"`  // MiB-seconds
	PeakMem   int64  `json:"peak_mem"`  // MiB-seconds, if each peak had lasted
	Memory    int64  `json:"memory"`    // bytes that the last attempt asked for
	Peak      int64  `json:"peak"`      // bytes at their highest in an attempt that succeeded
	Succeeded int64  `json:"succeeded"` // attempts; only they count for Peak
}

// maxWasteAttempts bounds the attempts that are read for one answer: the newest.
const maxWasteAttempts = 200_000

// waste emits a line for each owner and name, those first that left most unused.
func (q *Query) waste(r accounting.Reader, filter accounting.Filter, emit func(line []byte) error) error {
	type key struct{ owner, name string }
	lines := map[key]*WasteLine{}
	for a, err := range r.Attempts(accounting.Selection{Range: q.timeRange(), By: accounting.ByEnd, Filter: filter,
		Descending: true, Limit: maxWasteAttempts}) {
		if err != nil {
			return err
		}
		k := key{a.Job.Owner, a.Job.Name}
		l := lines[k]
		if l == nil {
			l = &WasteLine{Owner: k.owner, Name: k.name, Memory: int64(a.Held.Memory)}
			lines[k] = l
		}
		l.add(&a.AttemptEntry)
	}
	all := slices.SortedFunc(maps.Values(lines), func(a, b *WasteLine) int {
		return cmp.Or(cmp.Compare(b.Idle, a.Idle), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name))
	})
	return emitAll(all, nil, q.limit(), emit)
}

// add adds an attempt that has ended. CPU time counts while it was not suspended.
func (l *WasteLine) add(a *accounting.AttemptEntry) {
	ran := max(a.Wall-a.Suspended, 0)
	held, used := int64(a.Held.CPU)*ran/1000, a.UserCPU+a.SystemCPU
	l.Attempts++
	l.HeldCPU, l.UsedCPU, l.Idle = l.HeldCPU+held, l.UsedCPU+used, l.Idle+max(held-used, 0)
	l.HeldMem += int64(a.Held.Memory/roost.MiB) * (a.Wall / 1000)
	l.PeakMem += int64(a.Peak.Memory/roost.MiB) * (a.Wall / 1000)
	if a.HasSucceeded() {
		l.Succeeded++
		l.Peak = max(l.Peak, int64(a.Peak.Memory))
	}
}
