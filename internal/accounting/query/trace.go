package query

import (
	"github.com/roost-batch/roost/internal/accounting"
)

// HoursLine is an attempt with what it used.
type HoursLine struct {
	AttemptLine
	Hours []accounting.UsageHour `json:"hours"`
}

// hours emits the attempts of the jobs that were submitted in the range, where something
// is known of their use.
func (q *Query) hours(r accounting.Reader, filter accounting.Filter, emit func(line []byte) error) error {
	n := 0
	selection := accounting.Selection{Range: q.timeRange(), By: accounting.BySubmit, Filter: filter}
	for a, err := range r.Attempts(selection) {
		if err != nil {
			return err
		}
		line := HoursLine{AttemptLine: AttemptLine{Job: *a.Job, Attempt: a.AttemptEntry}}
		for h, err := range r.AttemptUsage(a.AttemptKey) {
			if err != nil {
				return err
			}
			line.Hours = append(line.Hours, h)
		}
		if len(line.Hours) == 0 {
			continue
		}
		if n++; n > q.limit() {
			return nil
		}
		if err := emitLine(&line, emit); err != nil {
			return err
		}
	}
	return nil
}

// machines emits the changes of machines, and before them those that were there at the
// begin of the range. When owners use them, and who drained them, is left out.
func (q *Query) machines(r accounting.Reader, emit func(line []byte) error) error {
	n := 0
	add := func(m accounting.MachineEvent, what accounting.MachineChange) error {
		if q.Node != "" && m.Node != q.Node {
			return nil
		}
		if n++; n > q.limit() {
			return nil
		}
		m.What, m.Reason, m.By = what, "", ""
		return emitLine(&m, emit)
	}
	for m, err := range r.MachinesAt(q.From) {
		if err == nil {
			err = add(m, accounting.MachineAdded)
		}
		if err == nil && m.What == accounting.MachineDrained {
			err = add(m, m.What)
		}
		if err != nil {
			return err
		}
	}
	for m, err := range r.Machines(q.timeRange()) {
		switch {
		case err != nil:
		case m.What == accounting.MachineAvailable || m.What == accounting.MachineReclaimed:
		default:
			err = add(m, m.What)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
