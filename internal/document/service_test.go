package document

import (
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// TestService checks what is said of a service and of its checks.
func TestService(t *testing.T) {
	s := ServiceOf(&scheddapi.ServiceHealth{Wanted: 6,
		States: map[string]uint32{"absent": 1, "waiting": 2, "unready": 1, "ready": 2},
		Checks: []*scheddapi.CheckResult{
			{Name: "up", Kind: "http", Port: "http", Every: 1500e6, Result: "passed"},
			{Name: "alive", Kind: "exec", Live: true, Every: 10e9, Result: "failed", Failures: 3, Detail: "a\x1bb"},
			{Name: "db", Kind: "tcp", Port: "db", Every: 1e9, Result: "failed", Failures: 1}, {Name: "new"}}})
	if got, want := s.Text(), "2 of 6 ready, 1 unready, 2 waiting for a restart, 1 not started"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, want := range [][2]string{{"http on port http, every 1.5s", "passed"},
		{"exec, for live, every 10s", "failed 3 times: " + PrintableText("a\x1bb")},
		{"tcp on port db, every 1s", "failed once"}, {", every 0s", "no result yet"}} {
		if c := s.Checks[i]; c.Text() != want[0] || c.ResultText() != want[1] {
			t.Errorf("check %s: got %q, %q", c.Name, c.Text(), c.ResultText())
		}
	}
	counts := []ServiceState{{"ready", 2}, {"unready", 1}, {"waiting", 2}, {"absent", 1}}
	if got := s.Counts(); !slices.Equal(got, counts) || s.IsAsWanted() {
		t.Errorf("got %v, %v", got, s.IsAsWanted())
	}
	if all := ServiceOf(&scheddapi.ServiceHealth{Wanted: 2, States: map[string]uint32{"ready": 2}}); !all.IsAsWanted() {
		t.Errorf("%s is not as wanted", all.Text())
	}
	if ServiceOf(nil) != nil {
		t.Error("a job that is none has a service")
	}
}
