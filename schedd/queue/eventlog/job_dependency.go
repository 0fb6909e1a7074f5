package eventlog

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// JobDependency says what a job waits for of another job of its schedd, or which job
// waits for it.
type JobDependency struct {
	Type DependencyType
	Job  uint64 // 0: of OnCount and SyncCount
	// of how many tasks it has to be true; 0: of the job as a whole, every: of all. Of
	// OnCount and SyncCount how many jobs
	Count int
	// one of those that are alternatives has to be true, and not all (sbatch,
	// --dependency=A?B)
	Alternative bool
	Delay       int64 // of After: so many seconds after that
	Due         int64 // it is true from then on, unix nanoseconds: the other one has left the queue; 0: it has not
}

// MaxDelay bounds Delay, in seconds: a year.
const MaxDelay = 366 * 24 * 3600

// EveryTask is a Count that stands for all tasks, however many there are.
const EveryTask = -1

// DependencyType says what has to happen to the other job. The numbers stand in logs on
// disk.
type DependencyType uint8

// The types of dependency (OpenPBS and Torque, qsub -W depend). What a job that is to
// come before another says (Before and its like) is kept with both.
const (
	AfterOK DependencyType = iota + 1
	AfterNotOK
	AfterAny
	After // it has started
	// of this job and the others only one is run: the first to start has the others wait,
	// and when it has ended they are dropped
	RunOne
	SyncWith  // as many jobs as the other one's SyncCount says are there to start with it
	Never     // it has ended already, and otherwise
	OnCount   // so many jobs are to be submitted that come before this one
	SyncCount // so many jobs are to be submitted that start with this one
	Before    // the other one is After this one
	BeforeOK  // likewise
	BeforeNotOK
	BeforeAny
	AfterReady // all wanted tasks of the other one, a service, are ready
	// each task of this array waits for the one of the other array that has its index to
	// succeed (sbatch, --dependency=aftercorr)
	AfterCorr
)

var DependencyTypeNames = [...]string{
	AfterOK: "afterok", AfterNotOK: "afternotok", AfterAny: "afterany", After: "after", RunOne: "runone",
	SyncWith: "syncwith", Never: "never", OnCount: "on",
	SyncCount: "synccount", Before: "before", BeforeOK: "beforeok", BeforeNotOK: "beforenotok", BeforeAny: "beforeany",
	AfterReady: "afterready", AfterCorr: "aftercorr",
}

func (t DependencyType) String() string {
	if int(t) < len(DependencyTypeNames) && DependencyTypeNames[t] != "" {
		return DependencyTypeNames[t]
	}
	return fmt.Sprintf("wait(%d)", uint8(t))
}

// MirroredType is what a type that begins with before makes of the other job; 0 for any
// other type.
func (t DependencyType) MirroredType() DependencyType {
	switch t {
	case Before:
		return After
	case BeforeOK:
		return AfterOK
	case BeforeNotOK:
		return AfterNotOK
	case BeforeAny:
		return AfterAny
	}
	return 0
}

// MirrorOf is the type that mirror makes this one of; 0: there is none.
func (t DependencyType) MirrorOf() DependencyType {
	for b := Before; b <= BeforeAny; b++ {
		if b.MirroredType() == t {
			return b
		}
	}
	return 0
}

// Blocks reports whether a job waits for the other one by this type.
func (t DependencyType) Blocks() bool {
	return t >= AfterOK && t <= After || t == SyncWith || t == Never || t == AfterReady || t == AfterCorr
}

// AllowsCount reports whether a type may ask for so many tasks of an array.
func (t DependencyType) AllowsCount() bool { return t >= AfterOK && t <= After }

// append adds its form on disk. A count is two more there, for numbers are not negative.
func (w JobDependency) append(b []byte) []byte {
	b = appendNumber(appendNumber(b, 1, uint64(w.Type)), 2, w.Job)
	if w.Count != 0 {
		b = appendNumber(b, 3, uint64(w.Count+2))
	}
	if w.Alternative {
		b = appendNumber(b, 4, 1)
	}
	if w.Delay != 0 {
		b = appendNumber(b, 5, uint64(w.Delay))
	}
	if w.Due != 0 {
		b = appendNumber(b, 6, uint64(w.Due))
	}
	return b
}

func (w *JobDependency) decode(b []byte) error {
	err := eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			w.Type = DependencyType(f.value)
		case 2:
			w.Job = f.value
		case 3:
			w.Count = int(f.value) - 2
		case 4:
			w.Alternative = f.value != 0
		case 5:
			w.Delay = int64(f.value)
		case 6:
			w.Due = int64(f.value)
		}
		return nil
	})
	if err == nil && (w.Type < AfterOK || w.Type > AfterCorr || w.Count < EveryTask || w.Count > roost.MaxTasks ||
		w.Delay < 0 || w.Delay > MaxDelay || w.Due < 0) {
		err = fmt.Errorf("%w: a dependency of type %d, count %d and a delay of %d s", roost.Invalid, w.Type, w.Count,
			w.Delay)
	}
	return err
}
