package eventlog

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobpolicy"
)

// AttemptExit is how an attempt ended.
type AttemptExit struct {
	Code   int32
	Signal int32
	Core   bool
	Cause  ExitCause
	Reason string
	Wall   int64 // nanoseconds
	User   int64
	System int64
	MaxRSS int64 // bytes, of its largest process
	Used   ResourceUsage
	// CausePreemption: for whom it made room; nil: not known
	Preemptor *roost.PreemptionParty
	Stored    StoredOutput
	Verdict   jobpolicy.Verdict // of its user's conditions
	Steps     *Steps            // what srun ran in it; nil: nothing
	// the exit code that its job calls success; nobody but the queue sets it
	SuccessCode int32
}

// StoredOutput names the output of an attempt that is on the checkpoint server. Each name
// is the SHA-256 in hexadecimal digits; it is empty for what the attempt did not write.
type StoredOutput struct {
	Out, Err string // the captured streams
	Files    string // the output files, as package transfer stores them

	OutBytes, ErrBytes int64 // of the streams
	FileCount          int64 // of the files and directories in Files
	FileBytes          int64 // of these together
}

// ResourceUsage is what an attempt used beside time, in bytes, as its machine measured
// it; 0 where it could not. On their way into the queue the amounts are rounded up to
// whole KiB.
type ResourceUsage struct {
	Peak    int64 // memory that cannot be dropped, at its highest
	Read    int64 // from block devices
	Written int64
	PeakGPU int64 // memory of all its GPUs together, at its highest
	Disk    int64 // in its scratch directory
}

// ExitCause says why an attempt ended. The numbers are those of the wire.
type ExitCause uint8

// The causes.
const (
	CauseExited ExitCause = iota
	CauseWalltime
	CauseRemoval
	CauseVacate
	CauseLease
	CauseLaunch
	CauseMachine
	CauseMemory
	CauseGPUMemory
	CauseDisk
	CauseRestore    // the image that it was to go on from could not be restored
	CausePreemption // its place was needed by somebody who comes before it
	CauseCPUTime
	CauseVirtualMemory // its processes addressed too much memory
	CausePrologue      // the prologue of its machine would not have it
)

// IsSuccess reports whether the program ended by itself with the exit code of success.
func (e *AttemptExit) IsSuccess() bool {
	return e.Cause == CauseExited && e.Code == e.SuccessCode && e.Signal == 0
}

func (e *AttemptExit) append(b []byte) []byte {
	b = appendNumber(b, 1, uint64(uint32(e.Code)))
	b = appendNumber(b, 2, uint64(uint32(e.Signal)))
	b = appendBool(b, 3, e.Core)
	b = appendNumber(b, 4, uint64(e.Cause))
	b = appendText(b, 5, e.Reason)
	b = appendNumber(b, 6, uint64(e.Wall))
	b = appendNumber(b, 7, uint64(e.User))
	b = appendNumber(b, 8, uint64(e.System))
	b = appendNumber(b, 9, uint64(e.MaxRSS))
	b = appendNumber(b, 10, uint64(e.Used.Peak))
	b = appendNumber(b, 11, uint64(e.Used.Read))
	b = appendNumber(b, 12, uint64(e.Used.Written))
	b = appendNumber(b, 13, uint64(e.Used.PeakGPU))
	b = appendNumber(b, 14, uint64(e.Used.Disk))
	if e.Preemptor != nil {
		b = appendMessage(b, 15, func(b []byte) []byte { return appendParty(b, *e.Preemptor) })
	}
	b = appendText(appendNumber(b, 23, uint64(e.Verdict.Action)), 24, e.Verdict.Reason)
	if e.Steps != nil {
		for i := range e.Steps.List {
			b = appendMessage(b, 25, e.Steps.List[i].append)
		}
	}
	return e.Stored.append(appendNumber(b, 26, uint64(uint32(e.SuccessCode))))
}

// append adds the form on disk, within that of an exit.
func (o *StoredOutput) append(b []byte) []byte {
	b = appendText(appendText(appendText(b, 16, o.Out), 17, o.Err), 18, o.Files)
	b = appendNumber(appendNumber(b, 19, uint64(o.OutBytes)), 20, uint64(o.ErrBytes))
	return appendNumber(appendNumber(b, 21, uint64(o.FileCount)), 22, uint64(o.FileBytes))
}

func (o *StoredOutput) decode(f encodedField) {
	switch f.number {
	case 16:
		o.Out = string(f.bytes)
	case 17:
		o.Err = string(f.bytes)
	case 18:
		o.Files = string(f.bytes)
	case 19:
		o.OutBytes = int64(f.value)
	case 20:
		o.ErrBytes = int64(f.value)
	case 21:
		o.FileCount = int64(f.value)
	case 22:
		o.FileBytes = int64(f.value)
	}
}

// appendParty adds the form on disk of a party to a preemption.
func appendParty(b []byte, p roost.PreemptionParty) []byte {
	return appendNumber(appendText(appendText(b, 1, p.Job), 2, p.Owner), 3, uint64(p.Band))
}

func decodeParty(b []byte) (p roost.PreemptionParty, err error) {
	err = eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			p.Job = string(f.bytes)
		case 2:
			p.Owner = string(f.bytes)
		case 3:
			p.Band = roost.PriorityBand(f.value)
		}
		return nil
	})
	return p, err
}

func (x *AttemptExit) decode(b []byte) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			x.Code = int32(f.value)
		case 2:
			x.Signal = int32(f.value)
		case 3:
			x.Core = f.value != 0
		case 4:
			x.Cause = ExitCause(f.value)
		case 5:
			x.Reason = string(f.bytes)
		case 6:
			x.Wall = int64(f.value)
		case 7:
			x.User = int64(f.value)
		case 8:
			x.System = int64(f.value)
		case 9:
			x.MaxRSS = int64(f.value)
		case 10:
			x.Used.Peak = int64(f.value)
		case 26:
			x.SuccessCode = int32(f.value)
		case 11:
			x.Used.Read = int64(f.value)
		case 12:
			x.Used.Written = int64(f.value)
		case 13:
			x.Used.PeakGPU = int64(f.value)
		case 14:
			x.Used.Disk = int64(f.value)
		case 15:
			p, err := decodeParty(f.bytes)
			x.Preemptor = &p
			return err
		case 23:
			x.Verdict.Action = jobpolicy.Action(f.value)
		case 24:
			x.Verdict.Reason = string(f.bytes)
		case 25:
			var s Step
			if err := s.decode(f.bytes); err != nil {
				return err
			}
			if x.Steps == nil {
				x.Steps = &Steps{}
			}
			x.Steps.List = append(x.Steps.List, s)
		default:
			x.Stored.decode(f)
		}
		return nil
	})
}
