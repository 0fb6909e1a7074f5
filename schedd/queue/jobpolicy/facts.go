package jobpolicy

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Facts is what conditions are evaluated on, of one task. Times are unix nanoseconds.
type Facts struct {
	Job         uint64
	Index       int
	State       roost.TaskState
	Submitted   int64
	Entered     int64 // when it came into its state, as HTCondor counts states
	Started     int64 // the last attempt; 0: never
	Attempts    int   // that were made
	Completions int   // attempts whose program ended by itself
	Holds       int   // how often it was held
	RunTime     int64 // of the attempts that have ended, in nanoseconds
	HoldReason  string
	HeldByUser  bool  // its user or an administrator holds it
	Uncertain   bool  // what is known of it may be wrong, and somebody has to look
	Exit        *Exit // of the last attempt; nil: none has ended
	Live        bool  // the attempt runs, and Exit is what it has used so far
}

// Exit is how an attempt ended.
type Exit struct {
	Code, Signal int32
	Core         bool
	User, System int64 // nanoseconds
	MaxRSS, Peak int64 // bytes
	Disk         int64 // bytes
}

// HTCondor's numbers of the states of a job (HTCondor manual, "Job ClassAd Attributes",
// JobStatus).
const (
	statusIdle      = 1
	statusRunning   = 2
	statusRemoved   = 3
	statusCompleted = 4
	statusHeld      = 5
	statusSuspended = 7
)

// HTCondor's numbers of the reasons for a hold (HoldReasonCode).
const (
	heldByUser   = 1
	heldByPolicy = 26 // by Roost itself
)

// Status returns HTCondor's number of a state.
func Status(s roost.TaskState) int {
	switch s {
	case roost.Held:
		return statusHeld
	case roost.Suspended:
		return statusSuspended
	case roost.Removed:
		return statusRemoved
	case roost.Completed:
		return statusCompleted
	}
	if s.IsActive() {
		return statusRunning
	}
	return statusIdle
}

// addTo sets the attributes of the task in an ad, and deletes those that it has not.
func (f Facts) addTo(ad *classad.Ad) {
	seconds := func(nanos int64) int64 { return nanos / int64(time.Second) }
	for name, n := range map[string]int64{"ClusterId": int64(f.Job), "ProcId": int64(f.Index),
		"JobStatus": int64(Status(f.State)), "QDate": seconds(f.Submitted), "EnteredCurrentStatus": seconds(f.Entered),
		"NumJobStarts": int64(f.Attempts), "NumShadowStarts": int64(f.Attempts), "NumHolds": int64(f.Holds),
		"NumJobCompletions": int64(f.Completions), "RemoteWallClockTime": seconds(f.RunTime)} {
		ad.SetInt(name, n)
	}
	set := func(name string, has bool, v classad.Value) {
		if has {
			ad.SetValue(name, v)
		} else {
			ad.Delete(name)
		}
	}
	set("JobCurrentStartDate", f.Started != 0 && f.State.IsActive(), classad.IntValue(seconds(f.Started)))
	set("JobStartDate", f.Started != 0, classad.IntValue(seconds(f.Started)))
	held := f.State == roost.Held
	set("HoldReason", held, classad.StringValue(f.HoldReason))
	code := int64(heldByPolicy)
	if f.HeldByUser {
		code = heldByUser
	}
	set("HoldReasonCode", held, classad.IntValue(code))
	set("HoldReasonSubCode", held, classad.IntValue(0))
	var x Exit
	if f.Exit != nil {
		x = *f.Exit
	}
	used, ended, mib := f.Exit != nil, f.Exit != nil && !f.Live, int64(roost.MiB)
	set("ExitBySignal", ended, classad.BoolValue(x.Signal != 0))
	set("ExitCode", ended && x.Signal == 0, classad.IntValue(int64(x.Code)))
	set("ExitSignal", ended && x.Signal != 0, classad.IntValue(int64(x.Signal)))
	set("JobCoreDumped", ended, classad.BoolValue(x.Core))
	set("RemoteUserCpu", used, classad.RealValue(time.Duration(x.User).Seconds()))
	set("RemoteSysCpu", used, classad.RealValue(time.Duration(x.System).Seconds()))
	peak := max(x.Peak, x.MaxRSS)
	set("MemoryUsage", peak > 0, classad.IntValue((peak+mib-1)/mib))
	set("ResidentSetSize", peak > 0, classad.IntValue(peak/int64(roost.KiB)))
	set("DiskUsage", x.Disk > 0, classad.IntValue(x.Disk/int64(roost.KiB)))
}
