package clitest

import (
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// SampleJobs is a small pool with a job of each sort.
func SampleJobs() *FakeSchedd {
	one := &wire.Resources{MilliCpu: 1000, Memory: 256 << 20}
	big := &wire.Resources{MilliCpu: 500, Memory: 4 << 30, Gpus: 1}
	code3 := &wire.ExitStatus{Code: 3, Wall: 61e9, UserCpu: 59e9, MaxRss: 70 << 20}
	f := &FakeSchedd{
		Jobs: []*wire.JobStatus{
			{Id: "64.pool.example.org", Name: "idler", Owner: "ann", Band: "batch",
				Submitted: TimeBefore(5 * time.Second), Tasks: 1, State: "idle",
				Counts: TaskCounts("idle", 1), Request: big, Reason: "no machine has a GPU",
				Brief: "wait 1/1: no node of 12 fits: 12 too small"},
			{Id: "63.pool.example.org", Name: "sweep with a very long name indeed", Owner: "ann", Band: "batch",
				Submitted: TimeBefore(3 * time.Hour), Started: TimeBefore(2 * time.Hour),
				Tasks: 16, Array: true, Counts: TaskCounts("running", 2, "idle", 2, "completed", 12, "failed", 1),
				Request: one},
			{Id: "62.pool.example.org", Name: "evil\x1b[2Jname", Owner: "bob", Band: "production",
				Submitted: TimeBefore(26 * time.Hour), Eligible: TimeBefore(3 * time.Hour),
				Waited: int64(90 * time.Minute), Started: TimeBefore(time.Minute), Tasks: 1,
				State: "running", Counts: TaskCounts("running", 1), Request: one, Node: "n2", Attempt: 2, Priority: 7,
				Queue: "express",
				Placed: &wire.Placed{Units: []string{"gpu0", "gpu1"}, Cores: []uint32{0, 1, 2, 8},
					Gpus: []*wire.Placed_Gpu{
						{Uuid: "GPU-1", Index: 0, Model: "NVIDIA A100", Memory: 20 << 30},
						{Uuid: "GPU-2", Index: 1, Whole: true},
					}}},
			{Id: "61.pool.example.org", Name: "broken", Owner: "ann", Band: "batch",
				Submitted: TimeBefore(50 * time.Hour), Started: TimeBefore(49 * time.Hour),
				Ended: TimeBefore(48 * time.Hour),
				Tasks: 1, State: "completed", Counts: TaskCounts("completed", 1, "failed", 1), Request: one, Node: "n1",
				Attempt: 1, Exit: code3},
		},
		Tasks: []*wire.JobStatus{
			{Id: "63[0].pool.example.org", Name: "sweep", Owner: "ann", State: "completed", Request: one, Node: "n1",
				Attempt: 1, Exit: code3, Tasks: 1, Started: TimeBefore(time.Hour), Ended: TimeBefore(time.Minute)},
			{Id: "63[1].pool.example.org", Name: "sweep", Owner: "ann", State: "running", Request: one, Node: "n10",
				Index: 1, Attempt: 1, Tasks: 1, Started: TimeBefore(time.Hour)},
		},
		Machines: []string{
			`[Name = "n10"; MyType = "Machine"; State = "Claimed"; Cpus = 0; TotalCpus = 2; Memory = 512; TotalMemory = 2048; LoadAvg = 1.5; NumRunning = 1]`,
			`[Name = "n2"; MyType = "Machine"; State = "Unclaimed"; Cpus = 7.5; TotalCpus = 8; Memory = 12800; TotalMemory = 16384; LoadAvg = 0.1; TotalGpus = 2; Gpus = 1; RUs = {` +
				`[Name = "cpu"; Cpus = 3.5; StreamCpus = 4; TotalCpus = 4; Memory = 4608; TotalMemory = 8192; RunLimit = 0; Running = 1; QueueLength = 0; QueueRoom = 2; PredictedWait = 0.0], ` +
				`[Name = "gpu0"; Cpus = 0; StreamCpus = 4; TotalCpus = 4; Memory = 8192; TotalMemory = 8192; RunLimit = 2; Running = 1; QueueLength = 3; QueueRoom = 1; PredictedWait = 95.0; Gpus = {` +
				`[UUID = "GPU-4d7f"; Model = "NVIDIA A100-SXM4-40GB"; Memory = 40960; Free = 30720; Tasks = 1; NUMA = 0; Capability = "8.0"; Healthy = true]}]}; GpuDevices = {` +
				`[Index = 0; UUID = "GPU-4d7f"; Model = "NVIDIA A100-SXM4-40GB"; Memory = 40960; MemoryUsed = 10240; Busy = 0.42; Temperature = 61; Power = 250.5; Healthy = true],` +
				`[Index = 1; UUID = "GPU-77aa"; Model = "NVIDIA A100-SXM4-40GB"; Memory = 40960; Healthy = false; Why = "the card has fallen off the bus"]}]`,
		},
		JobEvents: []*wire.JobEvent{
			{Sequence: 1, Time: TimeBefore(50 * time.Hour), Id: "61.pool.example.org", What: "submitted",
				Text: "by ann"},
			{Sequence: 4, Time: TimeBefore(49 * time.Hour), Id: "61.pool.example.org", Attempt: 1, What: "started",
				Node: "n1"},
			{Sequence: 5, Time: TimeBefore(48 * time.Hour), Id: "61.pool.example.org", Attempt: 1, What: "completed",
				Exit: code3},
		},
	}
	f.Explanation = &wire.WhyReply{Status: f.Jobs[0], Summary: "no machine has what it asks for",
		Explanation: &wire.Explanation{
			Machines: 12, Ahead: 7, Higher: 2, Own: 4, Waiting: 1200, Brief: "wait 8/1200: 11 of 12 nodes busy",
			Start: Noon.Unix() + 20*60, Certainty: "walltime", Basis: "by the walltimes of what runs there",
			Reasons: []*wire.Explanation_Reason{{Text: "have no GPU", Machines: 11, Kind: "too small"},
				{Text: "is used by its owner", Machines: 1, Kind: "owner active"}},
			Conditions: []*wire.Explanation_Condition{
				{Text: "TARGET.Gpus >= RequestGpus", Means: "TARGET.Gpus >= 1", Pass: 1, Fail: 2,
					Undefined: 9, Alone: 3},
				{Text: `TARGET.Owner == "bob"`, Own: true, Pass: 11, Fail: 1},
			},
			Conflicts: []string{"A and B contradict each other"},
			Nearest:   []string{"n1 misses only TARGET.Gpus >= 1: its Gpus is 0"},
			Advice:    []string{"ask for no GPU"}}, Advice: []string{"ask for no GPU"}}
	return f
}

// TaskCounts makes the counts of tasks from pairs of a state and a number.
func TaskCounts(pairs ...any) map[string]uint32 {
	m := map[string]uint32{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = uint32(pairs[i+1].(int))
	}
	return m
}

// TimeBefore is an instant that long before Noon, in unix nanoseconds.
func TimeBefore(d time.Duration) int64 { return Noon.Add(-d).UnixNano() }

// Noon is the time of all programs under test.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
