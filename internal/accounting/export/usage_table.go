package export

import (
	"iter"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// UsageWindow is what an attempt used during one window of an hour.
type UsageWindow struct {
	accounting.AttemptRecord
	Begin, End accounting.Millis // within the attempt
	Sample     accounting.UsageSample
}

// UsageOf yields the windows of attempts for which something was reported. hours returns
// the hours of an attempt, as AttemptUsage of [accounting.Reader] does.
func UsageOf(attempts iter.Seq2[accounting.AttemptRecord, error],
	hours func(accounting.AttemptKey) iter.Seq2[accounting.UsageHour, error],
) iter.Seq2[UsageWindow, error] {
	return func(yield func(UsageWindow, error) bool) {
		for a, err := range attempts {
			if err != nil {
				yield(UsageWindow{}, err)
				return
			}
			for h, err := range hours(a.AttemptKey) {
				if err != nil {
					yield(UsageWindow{}, err)
					return
				}
				for i, s := range h.Windows {
					if s == (accounting.UsageSample{}) {
						continue
					}
					begin := h.Hour + accounting.Millis(i)*accounting.UsageWindow
					w := UsageWindow{a, begin, begin + accounting.UsageWindow, s}
					if a.Ended != 0 {
						w.End = min(w.End, a.Ended)
					}
					if w.Begin = max(w.Begin, a.Started); w.End < w.Begin { // clocks of two machines
						w.End = w.Begin
					}
					if !yield(w, nil) {
						return
					}
				}
			}
		}
	}
}

// Usage returns the table of usage.
func Usage() *Table[UsageWindow] {
	type record = UsageWindow
	return &Table[record]{"usage", "A record is what an attempt used during 300 s, or during its part of them.",
		slices.Concat(keyColumns(func(u *record) *accounting.JobEntry { return u.Job }),
			attemptKeyColumns(func(u *record) *accounting.AttemptKey { return &u.AttemptKey }), []Column[record]{
				{"node", "node that it ran on", func(u *record) cell { return textOf(u.Node) }},
				{"begin", "begin of the window", func(u *record) cell { return timeOf(u.Begin) }},
				{"end", "end of the window", func(u *record) cell { return timeOf(u.End) }},
				{"cpus_mean", "CPUs that it used on average",
					func(u *record) cell { return thousandthsOf(u.Sample.CPUMean) }},
				{"cpus_max", "CPUs that it used at most",
					func(u *record) cell { return thousandthsOf(u.Sample.CPUMax) }},
				{"memory_max_bytes", "memory at its highest",
					func(u *record) cell { return integerOf(u.Sample.MemoryMax) }},
				{"cache_bytes", "page cache of its files", func(u *record) cell { return integerOf(u.Sample.Cache) }},
				{"gpu_memory_max_bytes", "GPU memory at its highest",
					func(u *record) cell { return integerOf(u.Sample.GPUMax) }},
				{"read_bytes", "read from disks in the window",
					func(u *record) cell { return integerOf(u.Sample.Read) }},
				{"written_bytes", "written to disks in the window",
					func(u *record) cell { return integerOf(u.Sample.Written) }},
			})}
}

// machineChanges are the words for changes of machines, by number.
func machineChanges() []string {
	return []string{accounting.MachineAdded: "added", accounting.MachineUpdated: "updated",
		accounting.MachineRemoved: "removed", accounting.MachineDrained: "drained",
		accounting.MachineUndrained: "undrained", accounting.MachineAvailable: "available",
		accounting.MachineReclaimed: "reclaimed"}
}

// Machines returns the table of changes of machines.
func Machines() *Table[accounting.MachineEvent] {
	type record = accounting.MachineEvent
	names := machineChanges()
	return &Table[record]{"machines", "A record is a change of a machine.", slices.Concat([]Column[record]{
		{"node", "node", func(m *record) cell { return textOf(m.Node) }},
		{"time", "when it changed", func(m *record) cell { return timeOf(m.Time) }},
		{"what", "added, updated, removed, drained, undrained, available or reclaimed (by its owner)",
			func(m *record) cell {
				if int(m.What) >= len(names) {
					return integerOf(int(m.What))
				}
				return textOf(names[m.What])
			}},
		{"class", "class of the machine", func(m *record) cell { return textOf(m.Class) }},
	}, resourceColumns("", "it has then", func(m *record) *roost.Resources { return &m.Capacity }), []Column[record]{
		{"reason", "reason of a drain", func(m *record) cell { return textOf(m.Reason) }},
		{"by", "who drained it", func(m *record) cell { return textOf(m.By) }},
	})}
}
