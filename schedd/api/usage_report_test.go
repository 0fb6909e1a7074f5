package api

import (
	"errors"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestSanitizeUsage holds what is left of numbers that cannot be.
func TestSanitizeUsage(t *testing.T) {
	for _, gpu := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		in := &wire.TaskUsage{Memory: math.MinInt64, PeakMemory: 7, Gpu: gpu}
		if got, want := SanitizeUsage(in), (&wire.TaskUsage{PeakMemory: 7}); !proto.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", gpu, got, want)
		}
		if in.Memory != math.MinInt64 {
			t.Error("it was changed in place")
		}
	}
	fields := (&wire.TaskUsage{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		in := &wire.TaskUsage{Memory: 7}
		switch f := fields.Get(i); f.Kind() {
		case protoreflect.Int64Kind:
			in.ProtoReflect().Set(f, protoreflect.ValueOfInt64(-1))
		case protoreflect.DoubleKind:
			in.ProtoReflect().Set(f, protoreflect.ValueOfFloat64(math.NaN()))
		default:
			continue
		}
		if got := SanitizeUsage(in); proto.Equal(got, in) {
			t.Errorf("%v stays", in)
		}
	}
	if in := (&wire.TaskUsage{Memory: 7, Gpu: 0.5}); SanitizeUsage(in) != in {
		t.Error("a measurement without faults was copied")
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
