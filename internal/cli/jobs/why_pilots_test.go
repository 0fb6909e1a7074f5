package jobs

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestPilotLines(t *testing.T) {
	var d pilotsDocument
	if err := json.Unmarshal([]byte(`{"providers": [{"name": "cluster", "allocations": [
		{"key": "rpa", "id": "17", "state": "queued", "for": "1 task waits, job 1.n1 for 30s", "asked": 60},
		{"key": "rpb", "state": "submitting", "for": "1 task waits, job 11.n1 for 30s", "asked": 60},
		{"key": "rpc", "id": "9", "state": "ended", "for": "1 task waits, job 1.n1 for 30s", "asked": 60}]}],
		"unmet": [{"job": "2.n1", "provider": "cluster", "reason": "it has waited for less than 30s"}]}`), &d); err != nil {
		t.Fatal(err)
	}
	for job, want := range map[string][]string{
		"1.n1":  {"a pilot of cluster was asked for it just now: allocation rpa, 17 there is queued"},
		"11.n1": {"a pilot of cluster was asked for it just now: allocation rpb is submitting"},
		"2.n1":  {"no pilot of cluster is asked for it: it has waited for less than 30s"},
		"3.n1":  nil,
	} {
		if got := d.linesFor(job, func(int64) string { return "just now" }); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", job, got, want)
		}
	}
}
