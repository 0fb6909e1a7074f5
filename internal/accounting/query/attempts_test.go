package query

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// TestLiveAttempts lists what ended, then what runs, then what waits. An attempt that
// ended after the list was made is there once.
func TestLiveAttempts(t *testing.T) {
	record := func(owner string, seq uint64, attempt roost.AttemptNumber, started,
		ended accounting.Millis) accounting.AttemptRecord {
		key := accounting.JobKey{Month: 1, Seq: seq}
		a := accounting.AttemptRecord{Job: &accounting.JobEntry{JobKey: key, Owner: owner, Host: "n1", Submitted: 5}}
		a.JobKey, a.Started, a.Ended = key, started, ended
		a.AttemptKey.Attempt = attempt
		return a
	}
	stored := endedAttempts{all: []accounting.AttemptRecord{record("ann", 1, 1, 10, 20),
		record("ann", 2, 1, 10, 1_000_000)}}
	asked := []bool{}
	now := Now{Live: func(waiting bool) *LiveAttempts {
		asked = append(asked, waiting)
		return &LiveAttempts{At: 1_000_000, Missing: []string{"n9 is away"}, Records: []accounting.AttemptRecord{
			record("ann", 6, 0, 0, 0), record("ann", 5, 2, 300, 0), record("bob", 4, 1, 100, 0),
			record("ann", 2, 1, 10, 0), record("ann", 3, 1, 200, 0), record("ann", 7, 1, 9_000_000, 0)}}
	}}
	for _, c := range []struct {
		q    Query
		want []string
	}{
		{Query{}, []string{"1.1", "2.1"}},
		{Query{Live: LiveToo}, []string{"1.1", "2.1", "3.1", "5.2", "6.0", "n9 is away"}},
		{Query{Live: LiveToo, Limit: 3}, []string{"1.1", "2.1", "3.1", "n9 is away"}},
		{Query{Live: LiveOnly, Waiting: true}, []string{"2.1", "3.1", "5.2", "6.0", "n9 is away"}},
		{Query{Live: LiveOnly, Owner: "bob"}, []string{"4.1", "n9 is away"}},
		{Query{Live: LiveOnly, Job: 5, Host: "n1"}, []string{"5.2", "n9 is away"}},
		{Query{Live: LiveOnly, Job: 5, Host: "n2"}, []string{"n9 is away"}},
	} {
		q := c.q
		if q.Report, q.To = Attempts, 5_000_000; q.Owner == "" {
			q.Owner = "ann"
		}
		text, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if q, err = Parse(text); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := q.Answer(stored, nil, &now, func(line []byte) error {
			var l AttemptLine
			err := json.Unmarshal(line, &l)
			if l.Missing != "" {
				got = append(got, l.Missing)
			} else {
				got = append(got, fmt.Sprintf("%d.%d", l.Job.Seq, l.Attempt.Attempt))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", text, got, c.want)
		}
	}
	if !slices.Equal(asked, []bool{false, false, true, false, false, false}) {
		t.Errorf("waiting jobs were asked for: %v", asked)
	}
	for _, q := range []Query{{Report: Attempts, To: 1, Live: "x"}, {Report: Usage, To: 1, Live: LiveToo}} {
		text, _ := json.Marshal(q)
		if _, err := Parse(text); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
