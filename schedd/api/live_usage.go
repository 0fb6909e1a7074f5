package api

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/usagewindow"
)

// maxDumpable bounds the reason that a node gives for not taking checkpoints, in bytes.
const maxDumpable = 400

// liveUsage is what running attempts use, as their nodes last said. It lives in memory
// only: after a restart the nodes say it again within seconds. It is bounded by the
// attempts that run, as an entry is made for a live attempt and goes with it. The loop
// owns it.
type liveUsage map[roost.TaskID]taskUsage

type taskUsage struct {
	attempt  roost.AttemptNumber
	usage    *wire.TaskUsage
	dumpable string
	steps    []*wire.StepRecord
}

// OnUsageReport takes in a node's report. What it says of attempts that are not live, or
// run elsewhere, is dropped.
func (act *jobActions) OnUsageReport(node string, report *wire.UsageReport) {
	reported := map[roost.TaskID]bool{}
	for _, u := range report.GetAttempts() {
		a := codec.AttemptID(act.node.Name, u.GetAttempt())
		if node == "" || act.queue.NodeOf(a) != node {
			continue
		}
		act.usageWindows.Add(windowKey(a), u.GetWindows(), act.loop.Now())
		t := taskUsage{attempt: a.Attempt, usage: SanitizeUsage(u.GetUsage()),
			dumpable: SanitizeSentence(u.GetDumpable())}
		if old := act.liveUsage[a.Task]; old.attempt == a.Attempt { // a report may be about one of the two
			if t.usage == nil {
				t.usage = old.usage
			}
			if t.dumpable == "" {
				t.dumpable = old.dumpable
			}
			t.steps = old.steps
		}
		t.steps = mergeSteps(t.steps, u.GetSteps())
		act.liveUsage[a.Task] = t
		reported[a.Task] = true
	}
	for _, t := range slices.SortedFunc(maps.Keys(reported), func(a, b roost.TaskID) int {
		return cmp.Or(cmp.Compare(a.Job.Seq, b.Job.Seq), cmp.Compare(a.Index, b.Index))
	}) {
		act.endOverLimitGangs(t)
	}
}

// endOverLimitGangs ends a task's gang if its parts together have used more CPU time than
// allowed. Each of its nodes limits its own part to the whole amount. Telling a node
// twice changes nothing.
func (act *jobActions) endOverLimitGangs(t roost.TaskID) {
	a, reason, over := act.queue.GangOverCPULimit(t, func(a roost.AttemptID) time.Duration {
		t := act.liveUsage[a.Task]
		if t.attempt != a.Attempt {
			return 0
		}
		return time.Duration(t.usage.GetUserCpu() + t.usage.GetSystemCpu())
	})
	if over {
		act.loop.SendTo(act.queue.NodeOf(a), &wire.ToStartd{Of: &wire.ToStartd_Vacate{
			Vacate: &wire.Vacate{Attempt: codec.AttemptRef(a), Cause: wire.Cause_CAUSE_CPU_TIME, Reason: reason},
		}})
	}
}

// OnExitWindows takes in the windows of usage that come with the end of an attempt.
func (act *jobActions) OnExitWindows(a roost.AttemptID, windows []*wire.UsageWindow) {
	if act.queue.IsLive(a) {
		act.usageWindows.Add(windowKey(a), windows, act.loop.Now())
	}
}

func windowKey(a roost.AttemptID) usagewindow.Attempt {
	return usagewindow.Attempt{Job: a.Task.Job.Seq, Index: a.Task.Index, Attempt: a.Attempt}
}

// RemoveEndedUsage drops what was known of an attempt that an event is the end of.
func (v *jobView) RemoveEndedUsage(e *queue.JobEvent) {
	switch e.Type {
	case queue.Assigned, queue.Ended, queue.Lost:
		t := roost.JobID{Seq: e.Job, Host: v.node.Name}.Task(e.Index)
		delete(v.liveUsage, t)
		delete(v.checkResults, t)
		v.usageWindows.Remove(e.Job, e.Index)
	}
}

// addWindows adds to a row the windows of the tasks that it stands for.
func (v *jobView) addWindows(m *wire.JobStatus, st *queue.JobStatus) {
	from, to := 0, math.MaxInt
	if st.Task != nil {
		from = st.Task.Index
		m.TaskNumber = uint32(from)
		to = from + max(len(st.Placements)+len(st.Released), 1)
	}
	m.Windows = v.usageWindows.Windows(st.Job.Seq, from, to)
	addScalePoints(m, st)
}

// addToRow adds to a row what its task uses now, if it runs.
func (u liveUsage) addToRow(m *wire.JobStatus, st *queue.JobStatus) {
	if st.Task == nil || !st.Task.State.IsActive() {
		return
	}
	t, ok := u[st.Job.Task(st.Task.Index)]
	if !ok || t.attempt != st.Task.Attempt {
		return
	}
	m.Usage, m.Dumpable, m.Steps = t.usage, t.dumpable, t.steps
	// of a job of several chunks what all of them use, and those used that it has given
	// back
	for i := 1; i < len(st.Placements)+len(st.Released) && t.usage != nil; i++ {
		if part, ok := u[st.Job.Task(st.Task.Index+i)]; ok && part.usage != nil {
			m.Usage = combinedUsage(m.Usage, part.usage)
		}
	}
	if given := st.ReleasedUsage; given != (queue.CPUUsage{}) && t.usage != nil {
		m.Usage = combinedUsage(m.Usage, &wire.TaskUsage{UserCpu: given.User, SystemCpu: given.System})
	}
}

// mergeSteps returns the steps that are known of an attempt with those that are new. A
// list that rows may show is not changed.
func mergeSteps(known, reported []*wire.StepRecord) []*wire.StepRecord {
	if len(reported) == 0 {
		return known
	}
	all := slices.Clone(known)
	places := make(map[uint32]int, len(all))
	for i, s := range all {
		places[s.GetNumber()] = i
	}
	for _, s := range codec.SanitizeSteps(reported) {
		at, ok := places[s.GetNumber()]
		switch {
		case ok:
			all[at] = s
		case len(all) < codec.MaxSteps:
			places[s.GetNumber()] = len(all)
			all = append(all, s)
		}
	}
	return all
}

// combinedUsage is what two parts of a job use. No node can make a sum of it go round.
func combinedUsage(a, b *wire.TaskUsage) *wire.TaskUsage {
	sum := func(a, b int64) int64 {
		if a > math.MaxInt64-b {
			return math.MaxInt64
		}
		return a + b
	}
	return &wire.TaskUsage{
		Time: max(a.GetTime(), b.GetTime()), Wall: max(a.GetWall(), b.GetWall()),
		UserCpu: sum(a.GetUserCpu(), b.GetUserCpu()), SystemCpu: sum(a.GetSystemCpu(), b.GetSystemCpu()),
		Memory: sum(a.GetMemory(), b.GetMemory()), PeakMemory: sum(a.GetPeakMemory(), b.GetPeakMemory()),
		Cache:     sum(a.GetCache(), b.GetCache()),
		ReadBytes: sum(a.GetReadBytes(), b.GetReadBytes()), WriteBytes: sum(a.GetWriteBytes(), b.GetWriteBytes()),
		Processes: a.GetProcesses() + b.GetProcesses(),
		Gpu:       a.GetGpu() + b.GetGpu(), GpuMemory: sum(a.GetGpuMemory(), b.GetGpuMemory()),
		PeakGpuMemory: sum(a.GetPeakGpuMemory(), b.GetPeakGpuMemory()),
		Disk:          sum(a.GetDisk(), b.GetDisk()), Frozen: a.GetFrozen(),
	}
}

// SanitizeUsage returns a measurement without what cannot be: nobody's table or sum shall
// break on it. It copies only a measurement that it has to change, because a schedd gets
// thousands of others in a second.
func SanitizeUsage(u *wire.TaskUsage) *wire.TaskUsage {
	if u == nil || isSaneUsage(u) {
		return u
	}
	u = proto.CloneOf(u)
	for _, n := range []*int64{
		&u.Time, &u.Wall, &u.UserCpu, &u.SystemCpu, &u.Memory, &u.PeakMemory, &u.Cache, &u.ReadBytes, &u.WriteBytes,
		&u.GpuMemory, &u.PeakGpuMemory, &u.Disk, &u.Session,
	} {
		*n = max(*n, 0)
	}
	if math.IsNaN(u.Gpu) || math.IsInf(u.Gpu, 0) || u.Gpu < 0 {
		u.Gpu = 0
	}
	return u
}

// isSaneUsage reports whether no number of a measurement is impossible.
func isSaneUsage(u *wire.TaskUsage) bool {
	return min(u.GetTime(), u.GetWall(), u.GetUserCpu(), u.GetSystemCpu(), u.GetMemory(), u.GetPeakMemory(),
		u.GetCache(), u.GetReadBytes(), u.GetWriteBytes(), u.GetGpuMemory(), u.GetPeakGpuMemory(), u.GetDisk(),
		u.GetSession()) >= 0 && u.GetGpu() >= 0 && !math.IsInf(u.GetGpu(), 0)
}

// SanitizeSentence is what a node says in words, cut to a line that can be shown.
func SanitizeSentence(text string) string {
	if len(text) > maxDumpable {
		text = text[:maxDumpable]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// HasLiveUsage reports whether a node has said what a task uses now.
func (v *jobView) HasLiveUsage(t roost.TaskID) bool { return v.liveUsage[t].usage != nil }
