package codec

import (
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// QueueExit turns the wire's form of an end into the queue's.
func QueueExit(x *wire.ExitStatus) *queue.AttemptExit {
	return &queue.AttemptExit{
		Code: x.GetCode(), Signal: x.GetSignal(), Core: x.GetCore(), Cause: queue.ExitCause(x.GetCause()),
		Reason: x.GetReason(),
		Wall:   x.GetWall(), User: x.GetUserCpu(), System: x.GetSystemCpu(), MaxRSS: x.GetMaxRss(),
		Used: queueUsage(x.GetUsage()),
	}
}

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
	return &wire.ExitStatus{
		Code: x.Code, Signal: x.Signal, Core: x.Core, Cause: wire.Cause(x.Cause), Reason: x.Reason,
		Wall: x.Wall, UserCpu: x.User, SystemCpu: x.System, MaxRss: x.MaxRSS, Usage: wireUsed(x),
	}
}
