package queue

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// Wait is how a job stands to another job of the same schedd: what it waits for, or who waits for it.
type Wait struct {
	Type  WaitType
	Job   uint64 // 0: of Ons and SyncCount
	Count int    // of how many tasks it has to be true; 0: of the job as a whole, every: of all. Of Ons and SyncCount how many jobs
}

// every is a Count that stands for all tasks, however many there are.
const every = -1

// WaitType says what has to happen to the other job. The numbers stand in logs on disk.
type WaitType uint8

// The types of dependency (OpenPBS and Torque, qsub -W depend). What a job that is to come before another says (Before and its like) is kept with both.
const (
	AfterOK WaitType = iota + 1
	AfterNotOK
	AfterAny
	After     // it has started
	RunOne    // of this job and the others only one is run: the first to start has the others wait, and when it has ended they are dropped
	SyncWith  // as many jobs as the other one's SyncCount says are there to start with it
	Never     // it has ended already, and otherwise
	Ons       // so many jobs are to be submitted that come before this one
	SyncCount // so many jobs are to be submitted that start with this one
	Before    // the other one is After this one
	BeforeOK  // likewise
	BeforeNotOK
	BeforeAny
)

var waitTypes = [...]string{
	AfterOK: "afterok", AfterNotOK: "afternotok", AfterAny: "afterany", After: "after", RunOne: "runone", SyncWith: "syncwith", Never: "never", Ons: "on",
	SyncCount: "synccount", Before: "before", BeforeOK: "beforeok", BeforeNotOK: "beforenotok", BeforeAny: "beforeany",
}

func (t WaitType) String() string {
	if int(t) < len(waitTypes) && waitTypes[t] != "" {
		return waitTypes[t]
	}
	return fmt.Sprintf("wait(%d)", uint8(t))
}

// mirror is what a type that begins with before makes of the other job; 0 for any other type.
func (t WaitType) mirror() WaitType {
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

// mirrored is the type that mirror makes this one of; 0: there is none.
func (t WaitType) mirrored() WaitType {
	for b := Before; b <= BeforeAny; b++ {
		if b.mirror() == t {
			return b
		}
	}
	return 0
}

// holds reports whether a job waits for the other one by this type.
func (t WaitType) holds() bool { return t >= AfterOK && t <= After || t == SyncWith || t == Never }

// counted reports whether a type may ask for so many tasks of an array.
func (t WaitType) counted() bool { return t >= AfterOK && t <= After }

// maxOthers bounds how many jobs Ons and SyncCount may ask for.
const maxOthers = 1_000_000

func waitTypeOf(s string) (WaitType, bool) {
	for t, name := range waitTypes {
		if s == name && name != "" && WaitType(t) != Never {
			return WaitType(t), true
		}
	}
	return 0, false
}

// parseWait reads an entry of DependsOn: "afterok:12", "12", "afterokarray:12[][3]", "on:2", "runone:12.host", … . The job is returned as text.
func parseWait(text string) (w Wait, job string, err error) {
	kind, job, found := strings.Cut(text, ":")
	if !found {
		return Wait{Type: AfterOK}, text, nil
	}
	name, ofArray := strings.CutSuffix(kind, "array")
	if ofArray {
		name = strings.Replace(name, "afterstart", "after", 1)
		name = strings.Replace(name, "beforestart", "before", 1)
	}
	t, ok := waitTypeOf(name)
	switch {
	case !ok || ofArray && !t.counted() && t.mirror() == 0:
		return w, "", fmt.Errorf("%q is not a type of dependency: use one of after, afterok, afternotok, afterany, before and its like, on, runone, synccount, syncwith: %w", kind, roost.Invalid)
	case t == Ons || t == SyncCount:
		n, err := strconv.Atoi(job)
		if err != nil || n < 1 || n > maxOthers {
			return w, "", fmt.Errorf("%w: %q is no number of jobs", roost.Invalid, job)
		}
		return Wait{Type: t, Count: n}, "", nil
	}
	w.Type = t
	if ofArray && t.counted() {
		w.Count = every
		job, w.Count, err = countOf(job)
	}
	return w, job, err
}

// countOf takes "[3]" off "12[3].host" or "12[][3].host".
func countOf(job string) (rest string, count int, err error) {
	open, end := strings.LastIndexByte(job, '['), strings.LastIndexByte(job, ']')
	if open < 0 || end != strings.IndexByte(job[open:], ']')+open || end == open+1 {
		return job, every, nil
	}
	n, err := strconv.Atoi(job[open+1 : end])
	if err != nil || n < 1 || n > roost.MaxTasks {
		return "", 0, fmt.Errorf("%w: %q is no number of tasks", roost.Invalid, job[open+1:end])
	}
	return job[:open] + job[end+1:], n, nil
}

// text is how PBS writes it.
func (w Wait) text(host string) string {
	switch {
	case w.Type == Ons || w.Type == SyncCount:
		return fmt.Sprintf("%v:%d", w.Type, w.Count)
	case w.Count != 0:
		name := w.Type.String() + "array"
		if w.Type == After {
			name = "afterstartarray"
		}
		count := ""
		if w.Count > 0 {
			count = fmt.Sprintf("[%d]", w.Count)
		}
		return fmt.Sprintf("%s:%d[]%s.%s", name, w.Job, count, host)
	}
	return fmt.Sprintf("%v:%d.%s", w.Type, w.Job, host)
}

// append adds its form on disk. A count is two more there, for numbers are not negative.
func (w Wait) append(b []byte) []byte {
	b = number(number(b, 1, uint64(w.Type)), 2, w.Job)
	if w.Count != 0 {
		b = number(b, 3, uint64(w.Count+2))
	}
	return b
}

func (w *Wait) decode(b []byte) error {
	err := fields(b, func(f field) error {
		switch f.number {
		case 1:
			w.Type = WaitType(f.value)
		case 2:
			w.Job = f.value
		case 3:
			w.Count = int(f.value) - 2
		}
		return nil
	})
	if err == nil && (w.Type < AfterOK || w.Type > BeforeAny || w.Count < every || w.Count > roost.MaxTasks) {
		err = fmt.Errorf("%w: a dependency of type %d and count %d", roost.Invalid, w.Type, w.Count)
	}
	return err
}
