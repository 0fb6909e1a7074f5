package codec

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// QueueExit turns the wire's form of an end into the queue's.
func QueueExit(x *wire.ExitStatus) *queue.AttemptExit {
	return &queue.AttemptExit{
		Code: x.GetCode(), Signal: x.GetSignal(), Core: x.GetCore(), Cause: queue.ExitCause(x.GetCause()),
		Reason: x.GetReason(),
		Wall:   max(x.GetWall(), 0), User: max(x.GetUserCpu(), 0), System: max(x.GetSystemCpu(), 0),
		MaxRSS: max(x.GetMaxRss(), 0),
		Used:   queueUsage(x.GetUsage()), Preemptor: preemptorOf(x), Steps: queueSteps(x.GetSteps()),
	}
}

// preemptorOf returns for whom a preempted attempt made room, nil if that is not known.
func preemptorOf(x *wire.ExitStatus) *roost.PreemptionParty {
	if x.GetPreemptor() == nil || x.GetCause() != wire.Cause_CAUSE_PREEMPTED {
		return nil
	}
	if all := PreemptionParties([]*wire.PreemptionParty{x.GetPreemptor()}); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// Bounds of what a node says of the parties to a preemption.
const (
	maxParties   = 64
	maxPartyName = 256 // bytes of an id, or of an owner's name
)

// PreemptionParties returns the well-formed ones of the named parties to a preemption. A
// node says who they are, so they are bounded, in number and length.
func PreemptionParties(named []*wire.PreemptionParty) (all []roost.PreemptionParty) {
	for _, m := range named[:min(len(named), maxParties)] {
		p := roost.PreemptionParty{Job: m.GetJob(), Owner: m.GetOwner()}
		id, err := roost.ParseJobID(p.Job, "")
		isJob := p.Job == "" || err == nil && id.Host != "" && id.String() == p.Job
		if p.Band, err = roost.ParsePriorityBand(m.GetBand()); err != nil || !isJob || !isPartyName(p.Job) ||
			p.Owner == "" || !isPartyName(p.Owner) {
			continue
		}
		all = append(all, p)
	}
	return all
}

func isPartyName(text string) bool {
	return len(text) <= maxPartyName && utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// queueUsage returns what a machine measured of an attempt that has ended, in whole KiB.
// The rounding keeps most of the queue's records small.
func queueUsage(u *wire.TaskUsage) queue.ResourceUsage {
	kib := func(n int64) int64 { return (min(max(n, 0), 1<<60) + 1023) >> 10 << 10 }
	return queue.ResourceUsage{
		Peak: kib(u.GetPeakMemory()), Read: kib(u.GetReadBytes()), Written: kib(u.GetWriteBytes()),
		PeakGPU: kib(u.GetPeakGpuMemory()), Disk: kib(u.GetDisk()),
	}
}

// wireUsed is the way back; nil when nothing was measured.
func wireUsed(x *queue.AttemptExit) *wire.TaskUsage {
	if x.Used == (queue.ResourceUsage{}) {
		return nil
	}
	return &wire.TaskUsage{
		Wall: x.Wall, UserCpu: x.User, SystemCpu: x.System, PeakMemory: x.Used.Peak, ReadBytes: x.Used.Read,
		WriteBytes:    x.Used.Written,
		PeakGpuMemory: x.Used.PeakGPU, Disk: x.Used.Disk,
	}
}

// WireExitStatus is the way back.
func WireExitStatus(x *queue.AttemptExit) *wire.ExitStatus {
	if x == nil {
		return nil
	}
	status := &wire.ExitStatus{
		Code: x.Code, Signal: x.Signal, Core: x.Core, Cause: wire.Cause(x.Cause), Reason: x.Reason,
		Wall: x.Wall, UserCpu: x.User, SystemCpu: x.System, MaxRss: x.MaxRSS, Usage: wireUsed(x),
		Steps: wireSteps(x.Steps), SuccessCode: x.SuccessCode,
	}
	if x.Preemptor != nil {
		status.Preemptor = wire.FromParty(*x.Preemptor)
	}
	if o := x.Stored; o != (queue.StoredOutput{}) {
		status.Stored = &wire.StoredOutput{OutBytes: o.OutBytes, ErrBytes: o.ErrBytes, Files: o.FileCount,
			FileBytes: o.FileBytes}
	}
	return status
}
