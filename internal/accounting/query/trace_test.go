package query

import (
	"encoding/json"
	"iter"
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
)

// traceReader has an attempt with an hour of use, one without, and events of machines.
type traceReader struct{ accounting.Reader }

func rowsOf[T any](rows ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func (traceReader) Attempts(s accounting.Selection) iter.Seq2[accounting.AttemptRecord, error] {
	record := func(by accounting.TimeField, index int) accounting.AttemptRecord {
		r := accounting.AttemptRecord{Job: &accounting.JobEntry{Owner: "ann", Submitted: accounting.Millis(by)}}
		r.Index = index
		return r
	}
	return rowsOf(record(s.By, 0), record(s.By, 1))
}

func (traceReader) AttemptUsage(key accounting.AttemptKey) iter.Seq2[accounting.UsageHour, error] {
	if key.Index == 0 {
		return rowsOf[accounting.UsageHour]()
	}
	return rowsOf(accounting.UsageHour{AttemptKey: key, Hour: 7})
}

func (traceReader) MachinesAt(accounting.Millis) iter.Seq2[accounting.MachineEvent, error] {
	return rowsOf(accounting.MachineEvent{Node: "a", What: accounting.MachineReclaimed, Reason: "keyboard"},
		accounting.MachineEvent{Node: "b", What: accounting.MachineDrained, By: "root"})
}

func (traceReader) Machines(accounting.TimeRange) iter.Seq2[accounting.MachineEvent, error] {
	return rowsOf(accounting.MachineEvent{Node: "a", What: accounting.MachineAvailable},
		accounting.MachineEvent{Node: "b", What: accounting.MachineRemoved, Reason: "gone"})
}

// TestTrace reads what a trace is made of. When the owner of a machine uses it, and who
// drained one, is not in it.
func TestTrace(t *testing.T) {
	var machines []accounting.MachineEvent
	q := Query{Report: Machines, From: 5, To: 9}
	if err := q.Answer(traceReader{}, nil, &Now{}, func(line []byte) error {
		machines = append(machines, accounting.MachineEvent{})
		return json.Unmarshal(line, &machines[len(machines)-1])
	}); err != nil {
		t.Fatal(err)
	}
	want := []accounting.MachineEvent{{Node: "a", What: accounting.MachineAdded},
		{Node: "b", What: accounting.MachineAdded}, {Node: "b", What: accounting.MachineDrained},
		{Node: "b", What: accounting.MachineRemoved}}
	if !slices.Equal(machines, want) {
		t.Errorf("got %+v, want %+v", machines, want)
	}
	var hours []HoursLine
	q.Report = Hours
	if err := q.Answer(traceReader{}, nil, &Now{}, func(line []byte) error {
		hours = append(hours, HoursLine{})
		return json.Unmarshal(line, &hours[len(hours)-1])
	}); err != nil {
		t.Fatal(err)
	}
	if len(hours) != 1 || hours[0].Attempt.Index != 1 || len(hours[0].Hours) != 1 || hours[0].Hours[0].Hour != 7 ||
		hours[0].Job.Submitted != accounting.Millis(accounting.BySubmit) {
		t.Errorf("got %+v", hours)
	}
}
