package schedd

import (
	"errors"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// report sends what attempts use.
func (f *fakeStartd) report(attempts ...*wire.AttemptUsage) {
	f.send(&wire.FromStartd{Of: &wire.FromStartd_Usage{Usage: &wire.UsageReport{Attempts: attempts}}})
}

// What a task uses is shown while it runs and as its node last said, and nothing that
// makes no sense gets in.
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
	if d := got.GetDumpable(); !strings.HasPrefix(d, "no: [2Jxxx") || len(d) != maxDumpable {
		t.Errorf("got %d bytes %.20q", len(d), d)
	}
	p.startd.exited(a, &wire.ExitStatus{}, "")
	p.await(id, "completed 1")
	if got := present(); got.GetUsage() != nil || got.GetDumpable() != "" {
		t.Errorf("it has ended and shows %v", got)
	}
}

// TestSanitizeUsage holds what is left of numbers that cannot be.
func TestSanitizeUsage(t *testing.T) {
	for _, gpu := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		in := &wire.TaskUsage{Memory: math.MinInt64, PeakMemory: 7, Gpu: gpu}
		if got, want := sanitizeUsage(in), (&wire.TaskUsage{PeakMemory: 7}); !proto.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", gpu, got, want)
		}
		if in.Memory != math.MinInt64 {
			t.Error("it was changed in place")
		}
	}
}

// TestMayEnter holds who gets a shell in a task, and when.
func TestMayEnter(t *testing.T) {
	task := roost.JobID{Seq: 1, Host: "h"}.Task(0)
	running := queue.TaskOutput{UID: 1000, Owner: "ann", State: roost.Running, Running: true, Node: "n1"}
	in := func(s roost.TaskState) queue.TaskOutput { o := running; o.State = s; return o }
	for _, tt := range []struct {
		name string
		who  queue.CallerIdentity
		o    queue.TaskOutput
		near bool
		want error
	}{
		{"its owner", queue.CallerIdentity{UID: 1000}, running, true, nil},
		{"root", queue.CallerIdentity{UID: 0}, running, true, nil},
		{"another", queue.CallerIdentity{UID: 1001}, running, true, roost.PermissionDenied},
		{"the schedd's own user", queue.CallerIdentity{UID: 64, Admin: true}, running, true, roost.PermissionDenied},
		{"another, of one that has ended", queue.CallerIdentity{UID: 1001}, in(roost.Completed), true,
			roost.PermissionDenied},
		{"completed", queue.CallerIdentity{UID: 1000}, in(roost.Completed), true, roost.Finished},
		{"removed", queue.CallerIdentity{UID: 1000}, in(roost.Removed), true, roost.Finished},
		{"idle", queue.CallerIdentity{UID: 1000}, in(roost.Idle), true, roost.Conflict},
		{"starting", queue.CallerIdentity{UID: 1000}, in(roost.Starting), true, roost.Conflict},
		{"suspended", queue.CallerIdentity{UID: 1000}, in(roost.Suspended), true, roost.Conflict},
		{"far away", queue.CallerIdentity{UID: 1000}, running, false, roost.Unavailable},
	} {
		if got := checkShellAccess(tt.who, task.String(), tt.o, tt.near); !errors.Is(got, tt.want) ||
			(got == nil) != (tt.want == nil) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestCombinedUsage: what the parts of a job use is added up, and does not go round.
func TestCombinedUsage(t *testing.T) {
	got := combinedUsage(&wire.TaskUsage{UserCpu: 3, Memory: math.MaxInt64, Processes: 1, Wall: 7},
		&wire.TaskUsage{UserCpu: 4, SystemCpu: 2, Memory: 5, Processes: 2, Wall: 6})
	want := &wire.TaskUsage{UserCpu: 7, SystemCpu: 2, Memory: math.MaxInt64, Processes: 3, Wall: 7}
	if !proto.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
