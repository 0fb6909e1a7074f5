package schedd

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire"
)

// report sends what attempts use.
func (f *fakeStartd) report(attempts ...*wire.AttemptUsage) {
	f.send(&wire.FromStartd{Of: &wire.FromStartd_Usage{Usage: &wire.UsageReport{Attempts: attempts}}})
}

// TestUsageIsShown checks that queries show a running task's usage as its node last
// reported it. Impossible values are not shown.
func TestUsageIsShown(t *testing.T) {
	p := newPool(t)
	id := p.submit("k", 1, "").GetIds()[0]
	a := receiveNext(t, p.startd.activated, "an attempt").GetAttempt()
	p.startd.started(a)
	p.await(id, "running 1")
	present := func() *wire.JobStatus {
		t.Helper()
		rows, err := receive(p.client.Query(p.ctx(),
			&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}, History: true, Tasks: true}))
		if err != nil || len(rows) != 1 {
			t.Fatalf("got %v, %v", rows, err)
		}
		return rows[0]
	}
	if u := present().GetUsage(); u != nil {
		t.Errorf("before any report it shows %v", u)
	}
	older := &wire.AttemptRef{Job: a.GetJob(), Index: a.GetIndex(), Attempt: a.GetAttempt() + 1}
	unrelated := &wire.AttemptRef{Job: a.GetJob() + 7, Index: 1 << 30, Attempt: 1}
	p.startd.report(&wire.AttemptUsage{Attempt: a, Usage: &wire.TaskUsage{Memory: 100, Disk: -5, Gpu: math.NaN(),
		Processes: 3}, Dumpable: "no:\x1b[2J" + strings.Repeat("x", 1000)},
		&wire.AttemptUsage{Attempt: older, Usage: &wire.TaskUsage{Memory: 1}},
		&wire.AttemptUsage{Attempt: unrelated, Usage: &wire.TaskUsage{Memory: 2}}, &wire.AttemptUsage{})
	p.startd.report(&wire.AttemptUsage{Attempt: a, Usage: &wire.TaskUsage{Memory: 200, Processes: 3}})
	for present().GetUsage().GetMemory() != 200 { // the report before it is in, too
	}
	got := present()
	if want := (&wire.TaskUsage{Memory: 200, Processes: 3}); !proto.Equal(got.GetUsage(), want) {
		t.Errorf("got %v, want %v", got.GetUsage(), want)
	}
	if d := got.GetDumpable(); !strings.HasPrefix(d, "no: [2Jxxx") || len(d) != 400 {
		t.Errorf("got %d bytes %.20q", len(d), d)
	}
	p.startd.exited(a, &wire.ExitStatus{}, "")
	p.await(id, "completed 1")
	if got := present(); got.GetUsage() != nil || got.GetDumpable() != "" {
		t.Errorf("it has ended and shows %v", got)
	}
}
