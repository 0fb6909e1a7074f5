package main

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/tasktrace"
)

// TestStageTimes gives records to jobs: by their number, or by the time.
func TestStageTimes(t *testing.T) {
	jobs := []tracedJob{{begin: 1000, seq: 8}, {begin: 5000, seq: 9}}
	times := stageTimes(jobs, []tasktrace.StageRecord{
		{At: 900, Stage: tasktrace.Granted}, // before all jobs
		{At: 1000, Stage: tasktrace.Received}, {At: 4999, Stage: tasktrace.Granted},
		{At: 4000, Stage: tasktrace.Granted},
		{At: 5000, Stage: tasktrace.Received},
		{At: 9000, Stage: tasktrace.Exited, Task: tasktrace.Task{Job: 8}},
		{At: 9000, Stage: tasktrace.Exited, Task: tasktrace.Task{Job: 7}},
		{At: 9100, Stage: tasktrace.Exited, Task: tasktrace.Task{Job: 9}},
	})
	for i, want := range []map[string]time.Duration{
		{tasktrace.Received: 0, tasktrace.Granted: 3000, tasktrace.Exited: 8000},
		{tasktrace.Received: 0, tasktrace.Exited: 4100},
	} {
		if len(times[i]) != len(want) {
			t.Errorf("job %d: got %v, want %v", i, times[i], want)
		}
		for stage, at := range want {
			if got, ok := times[i][stage]; !ok || got != at {
				t.Errorf("job %d, %s: got %v, %v, want %v", i, stage, got, ok, at)
			}
		}
	}
}

// TestWaterfallStages orders stages by their medians and measures the steps between them.
func TestWaterfallStages(t *testing.T) {
	const ms = time.Millisecond
	times := []map[string]time.Duration{
		{tasktrace.Received: 1 * ms, tasktrace.Granted: 4 * ms, tasktrace.Forked: 9 * ms},
		{tasktrace.Received: 2 * ms, tasktrace.Granted: 4 * ms},
		{tasktrace.Received: 1 * ms, tasktrace.Granted: 5 * ms},
	}
	all := waterfallStages(times) // most jobs have not forked
	if len(all) != 2 || all[0].name != tasktrace.Received || all[1].name != tasktrace.Granted {
		t.Fatalf("got %v", all)
	}
	if all[0].at != ms || all[1].at != 4*ms || all[0].step.Percentile(100) != 2*ms ||
		all[1].step.Percentile(50) != 3*ms {
		t.Errorf("got %v", all)
	}
}

func TestWaterfallBar(t *testing.T) {
	for _, c := range []struct {
		from, to time.Duration
		want     string
	}{
		{0, 44, "|============================================"}, {0, 2, "|=="}, {2, 4, "|  =="}, {4, 4, "|    '"},
		{44, 44, "|                                           '"},
	} {
		if got := waterfallBar(c.from, c.to, 44); got != c.want {
			t.Errorf("%d to %d: got %q, want %q", c.from, c.to, got, c.want)
		}
	}
}
