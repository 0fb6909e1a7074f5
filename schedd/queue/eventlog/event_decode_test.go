package eventlog

import (
	"fmt"
	"testing"
)

func FuzzDecodeEvent(f *testing.F) {
	e := JobEvent{Type: Ended, Time: 5, Job: 7, Index: 2, Attempt: 1, Exit: &AttemptExit{Code: 1},
		Ranges: []IndexRange{{1, 2}}}
	f.Add(AppendEvent(nil, &e))
	e = JobEvent{Type: Checkpointed, Time: 5, Job: 7, Attempt: 1,
		Image: &CheckpointImage{Sequence: 3, MAC: []byte("mac"), CPUUsage: CPUUsage{1, 2, 3}, Node: "n"}}
	f.Add(AppendEvent(nil, &e))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEvent(b)
		if err != nil {
			return
		}
		again, err := DecodeEvent(AppendEvent(nil, &e))
		if err != nil || fmt.Sprint(again.Type, again.Job, again.Index) != fmt.Sprint(e.Type, e.Job, e.Index) {
			t.Fatalf("%v became %v (%v)", e, again, err)
		}
	})
}
