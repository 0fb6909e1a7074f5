package codec

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire"
)

// TestSteps holds that steps come back from the queue as they went in.
func TestSteps(t *testing.T) {
	want := &wire.StepRecord{Number: 3, Name: "solve", Began: 5, Ended: 9, Code: 2, Signal: 11, End: "cancelled",
		Tasks: 4, Cpus: 8, Nodes: 2, NodeList: "n[1-2]", UserCpu: 6, SystemCpu: 7, MaxRss: 1 << 20, MaxRssTask: 1,
		MaxRssNode: "n2", MinCpu: 3, MinCpuTask: 2, MinCpuNode: "n1", SumRss: 1 << 21}
	back := WireExitStatus(QueueExit(&wire.ExitStatus{Steps: []*wire.StepRecord{want}}))
	if len(back.GetSteps()) != 1 || !proto.Equal(back.GetSteps()[0], want) {
		t.Errorf("got %v, want %v", back.GetSteps(), want)
	}
	if n := want.ProtoReflect().Descriptor().Fields().Len(); n != 20 {
		t.Errorf("a step has %d fields, and this test sets 20", n)
	}
}

// TestHostileSteps holds that a node cannot say more of steps than bounded plain facts.
func TestHostileSteps(t *testing.T) {
	all := []*wire.StepRecord{nil, {Number: 1, Name: "a\x1b[31m", Began: -1, Code: -7, Signal: 1 << 20, MaxRss: -5},
		{Number: 1, Name: "again"}, {Number: 2, Name: strings.Repeat("x", 1000), NodeList: "\xff"}}
	for n := range uint32(3 * MaxSteps) {
		all = append(all, &wire.StepRecord{Number: 10 + n, Name: fmt.Sprint(n)})
	}
	got := SanitizeSteps(all)
	if len(got) > MaxSteps || len(got) < MaxSteps-4 {
		t.Fatalf("%d steps", len(got))
	}
	if s := got[0]; s.Name != "" || s.Began != 0 || s.Signal > 127 || s.Code < 0 || s.MaxRss != 0 {
		t.Errorf("%v", s)
	}
	if s := got[1]; s.Number != 2 || s.Name != "" || s.NodeList != "" {
		t.Errorf("%v", s)
	}
}
