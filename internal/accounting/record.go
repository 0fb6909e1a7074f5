package accounting

import (
	"encoding/hex"

	"github.com/roost-batch/roost"
)

// Millis is a time in milliseconds since 1970 in UTC. 0 means that it is not known, or
// that it has not come.
type Millis int64

// SourceID identifies the job queue of one schedd. It is made at random together with the
// log of the queue, so that a host that was installed again is another source.
type SourceID [16]byte

// String returns the id in hexadecimal digits.
func (s SourceID) String() string { return hex.EncodeToString(s[:]) }

// JobKey is the natural key of a job in all sources. The month of the submission never
// changes and is a part of each key, because the store is divided by it.
type JobKey struct {
	Month  Month // of Submitted: MonthOf(job.Submitted)
	Source SourceID
	Seq    uint64 // number of the job, as in 123.host
}

// AttemptKey is the natural key of an attempt of a task.
type AttemptKey struct {
	JobKey
	Index   int // of the task, from 0
	Attempt roost.AttemptNumber
}

// JobEntry is a job as accounting stores it. An entry with a higher feed number replaces
// one of the same key.
type JobEntry struct {
	JobKey
	Host      string // node of the schedd: the job is Seq.Host
	Name      string
	Owner     string // account on the host
	UID       uint32
	GID       uint32
	UnixGroup string // name of the group of GID; empty if it has none
	Group     string // group of the fair share, as "physics.atlas"; empty: none
	Project   string // what the job is charged to, as qsub -A says; empty: none
	Band      roost.PriorityBand
	Queue     string
	Array     bool
	Tasks     int
	Request   roost.Resources // of one task
	Walltime  int64           // milliseconds that one task asked for; 0: no limit
	Arguments string          // first word of the command, without its directory
	WorkDir   string
	Submitted Millis
	Eligible  Millis // since when it could run
	Ended     Millis // 0: it has not ended
	Removed   bool   // it ended because somebody removed it
}

// AttemptEntry is one execution of a task, from its assignment to a node to its end.
type AttemptEntry struct {
	AttemptKey
	Node      string
	AppClass  string // batch or stream, as the job asked for
	Class     string // of the machine when it started; the store finds it, no feed has it; empty: unknown
	Assigned  Millis
	Started   Millis
	Ended     Millis          // 0: it runs
	Held      roost.Resources // what it was given, which is what it is charged for
	Wall      int64           // milliseconds, measured on the node
	UserCPU   int64           // milliseconds
	SystemCPU int64
	Suspended int64           // milliseconds of Wall for which it was suspended or frozen
	Useful    int64           // milliseconds of Wall whose result was kept: it ended by itself, or a checkpoint has it
	Peak      roost.Resources // memory, disk and GPU memory at their highest; CPU and GPUs are 0
	Read      int64           // bytes from block devices
	Written   int64
	Cause     EndCause
	ExitCode  int32
	Signal    int32
	Reason    string // in words, of an attempt that did not succeed
	Segments  []Segment
}

// Segment is a part of an attempt during which it held the same resources or was
// suspended. An attempt without any has one segment from Started on.
type Segment struct {
	From      Millis
	Wall      int64 // milliseconds, measured on the node
	Suspended bool
	Held      roost.Resources
}

// UsageWindow is the length of one window of UsageHour in milliseconds.
const UsageWindow = 300_000

// UsageHour is what an attempt used during one hour, in windows of 300 s.
type UsageHour struct {
	AttemptKey
	Hour    Millis // its begin
	Windows [12]UsageSample
}

// UsageSample is one window of an attempt. The zero value means that nothing was
// reported.
type UsageSample struct {
	CPUMean   roost.MilliCPU
	CPUMax    roost.MilliCPU
	MemoryMax roost.Bytes
	Cache     roost.Bytes
	GPUMax    roost.Bytes // memory of its GPUs
	GPUMean   int64       // thousandths of a GPU
	Read      roost.Bytes // in the window
	Written   roost.Bytes
}

// UsageRecord is an hour of an attempt's usage with when the attempt started and ended.
// An attempt that runs has neither.
type UsageRecord struct {
	UsageHour
	Started, Ended Millis
}

// JobAction is what somebody did to a job, or what happened to it, in words for reports.
type JobAction struct {
	JobKey
	Time   Millis
	Index  int    // of the task; -1: the whole job
	What   string // "held", "released", "removed", "retried", "altered", …
	By     string // who asked; empty for Roost itself
	Reason string
}

// MachineEvent is a change of a machine of the pool.
type MachineEvent struct {
	Node     string
	Time     Millis
	What     MachineChange
	Capacity roost.Resources // after it
	Class    string
	Reason   string
	By       string // of a drain: who asked
}

// MachineChange is a kind of MachineEvent.
type MachineChange uint8

// The kinds of changes. The numbers are on disk.
const (
	MachineAdded MachineChange = iota + 1
	MachineUpdated
	MachineRemoved
	MachineDrained
	MachineUndrained
	MachineAvailable // its owner does not use it
	MachineReclaimed // its owner uses it
)

// EndCause is why an attempt ended. The numbers are on disk.
type EndCause uint8

// The causes. NotEnded means that the attempt runs.
const (
	NotEnded EndCause = iota
	EndedExit
	EndedWalltime
	EndedRemoval
	EndedVacate
	EndedLease
	EndedLaunch
	EndedMachine
	EndedMemory
	EndedGPUMemory
	EndedDisk
	EndedRestore
	EndedPreemption
	EndedCPUTime
	EndedVirtualMemory
	EndedPrologue
	// EndedOwnSuccess is an exit code other than 0 that the job calls success.
	EndedOwnSuccess
	// EndedOwnFailure is exit code 0 of a job that calls another one success.
	EndedOwnFailure
)

// IsCharged reports whether an attempt that ended so is charged. One that the pool, the
// machine or the machine's owner ended is not.
func (c EndCause) IsCharged() bool {
	switch c {
	case EndedPreemption, EndedVacate, EndedLease, EndedMachine, EndedRestore, EndedPrologue:
		return false
	}
	return true
}

// FeedEntry is one numbered entry of a source's feed. Exactly one of the pointers is set.
type FeedEntry struct {
	Number  uint64 // rises by 1 within a source, from 1, and never restarts
	Job     *JobEntry
	Attempt *AttemptEntry
	Action  *JobAction
	Usage   *UsageHour
}
