package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// What a job asks for may be changed after it was submitted (POSIX, qalter), by anything that could have been submitted in its place. An alteration is all or
// nothing, and of the whole job. A job that runs keeps the machine that it has, so little of it can be changed then; of an array of which some tasks run,
// everything can, and these go on as they began.

// Errors for what PBS has a number for.
var (
	ErrRunning = fmt.Errorf("%w: it cannot be changed while the job runs", roost.Conflict)
	ErrPart    = fmt.Errorf("%w: that is done to a whole job, and not to some of its tasks", roost.Invalid)
	ErrRaise   = fmt.Errorf("%w: only an administrator may raise a limit of a job that runs", roost.PermissionDenied)
)

// Alteration is what is to become of a job.
type Alteration struct {
	Changes *classad.Ad       // the new values; undefined takes an attribute away
	Count   int               // how many tasks it is to have; 0: as many as it has. It can be another number while none of them was ever begun
	Columns []Column          // with Count: in the place of those that it has
	Basis   int64             // how often it had been altered when this was thought out; below 0: whatever happened meanwhile
	Idle    bool              // it is refused if any task runs
	Conform func(*Spec) error // may fill in what is not said, and refuse the whole
}

// fixed are the attributes that say what a job is, and not what it asks for.
var fixed = []string{
	roost.AttrJobID, roost.AttrOwner, roost.AttrOwnerUID, roost.AttrOwnerGID, roost.AttrQDate, roost.AttrTaskCount, roost.AttrSubmitHost, roost.AttrAlterations,
	roost.AttrFileSystemDomain, roost.AttrArrayIndex, roost.AttrHoldOnSubmit, roost.AttrUnixGroup,
}

// loose are the attributes that can be changed while a job runs: what the next attempt begins with, and limits of this one (OpenPBS, master_job_attr_def.xml:
// ATR_DFLAG_ALTRUN).
var loose = []string{
	roost.AttrPBS, roost.AttrJobName, roost.AttrEnvironment, roost.AttrStartAfter, roost.AttrPriority, roost.AttrRerunnable, roost.AttrShell, roost.AttrWalltime, roost.AttrCPUTime,
	roost.AttrCheckpoint, roost.AttrCheckpointEvery, roost.AttrMaxRetries, roost.AttrMaxRunning, roost.AttrLabels,
	roost.AttrMailPoints, roost.AttrMailUsers, roost.AttrRunCount,
}

// Alter decides to change a job. That it is so already is no error, and no event.
func (q *Queue) Alter(now time.Time, who Submitter, t Target, a Alteration, limits Limits) ([]Event, error) {
	events, err := q.changeEach(now, who, t, Event{What: Altered}, (*job).stays)
	if err != nil {
		return nil, err
	}
	j := q.jobs[t.Job.Seq]
	if len(t.Ranges) > 0 {
		return nil, fmt.Errorf("%v: %w", t, ErrPart)
	}
	if a.Basis >= 0 && a.Basis != j.altered {
		return nil, fmt.Errorf("%v: %w: somebody else has altered it meanwhile", t, roost.Stale)
	}
	if a.Idle && j.active > 0 {
		return nil, fmt.Errorf("%v: %w: it runs", t, roost.Conflict)
	}
	for _, name := range a.Changes.Names() {
		if slices.ContainsFunc(fixed, func(f string) bool { return strings.EqualFold(f, name) }) {
			return nil, fmt.Errorf("attribute %s: %w: it says what the job is, and cannot be changed", name, roost.Invalid)
		}
	}
	before := Spec{Ad: q.parsed(j), Count: len(j.state), Columns: j.sub.Columns}
	after := Spec{Ad: before.Ad.Copy(), Count: cmp.Or(a.Count, before.Count), Columns: before.Columns}
	amend(after.Ad, a.Changes)
	if a.Count > 0 {
		after.Columns = a.Columns
		if _, ok := after.Ad.Lookup(attrArray); !ok && a.Count > 1 {
			after.Ad.SetBool(attrArray, true)
		}
	}
	if a.Conform != nil {
		if err := a.Conform(&after); err != nil {
			return nil, err
		}
	}
	changes := difference(before.Ad, after.Ad)
	if changes.Len() == 0 && after.Count == before.Count {
		return nil, nil
	}
	after.Ad.SetInt(roost.AttrTaskCount, int64(after.Count))
	after.Ad.SetInt(roost.AttrAlterations, j.altered+1)
	sub, err := q.alteration(j, who, &before, &after, changes, limits)
	if err != nil {
		return nil, err
	}
	events[0].Submission, events[0].Reason = sub, told(changes)
	return events, nil
}

// stays reports whether a task has not ended and nobody wants it removed.
func (j *job) stays(i int) bool {
	return !j.state[i].Final() && (!j.state[i].Active() || !j.book.written(i).removed)
}

// runs reports whether a job runs as a whole, which an array does not.
func (j *job) runs() bool { return j.active > 0 && (!j.plan.array || j.gangs.size > 0) }

// alteration checks what a job would become, and returns what the event has to say of it.
func (q *Queue) alteration(j *job, who Submitter, before, after *Spec, changes *classad.Ad, limits Limits) (*Submission, error) {
	if err := j.alterable(who, before, after, changes); err != nil {
		return nil, err
	}
	p, err := readPlan(after.Ad)
	if err != nil {
		return nil, err
	}
	if err := checkColumns(after.Columns, after.Count); err != nil {
		return nil, err
	}
	if err := checkOverrides(p, after.Columns); err != nil {
		return nil, err
	}
	if err := checkGang(&p, after); err != nil {
		return nil, err
	}
	sub := &Submission{}
	if _, said := changes.Lookup(roost.AttrDependsOn); said {
		others := &relating{Queue: q, who: who, seq: j.seq, limits: limits, lenient: p.pbs}
		if sub.Waits, err = others.waits(after.Ad); err != nil {
			return nil, err
		}
	}
	if size := len(after.Ad.String()); size > roost.MaxAdBytes {
		return nil, fmt.Errorf("%w: the job's ad would have %d bytes, and %d is the most", roost.Exhausted, size, roost.MaxAdBytes)
	}
	if p.saving != nil && len(j.sub.Secret) == 0 && limits.Secret != nil {
		sub.Secret = limits.Secret()
	}
	if after.Count != before.Count {
		if err := checkIndexes(after.Ad, after.Count/p.stride()); err != nil {
			return nil, err
		}
		sub.Count, sub.Columns = after.Count, after.Columns
	}
	sub.Unasked = asksMore(Submitter{User: j.sub.Owner, GID: j.sub.GID}, before, after)
	sub.Ad = difference(before.Ad, after.Ad).String()
	return sub, nil
}

// maxKinds bounds how many classes a job may have with those of tasks that go on as they began.
const maxKinds = 50_000

// alterable refuses what cannot be changed as the job stands.
func (j *job) alterable(who Submitter, before, after *Spec, changes *classad.Ad) error {
	for _, name := range changes.Names() {
		if slices.Contains(overriding, name) && slices.ContainsFunc(after.Columns, func(c Column) bool { return c.Name == name }) {
			return fmt.Errorf("attribute %s: %w: each task has its own, in a column", name, roost.Conflict)
		}
		if j.runs() && !slices.Contains(loose, name) {
			return fmt.Errorf("attribute %s: %w", name, ErrRunning)
		}
	}
	for _, name := range []string{roost.AttrWalltime, roost.AttrCPUTime} {
		was, _ := before.Ad.Int(name)
		if is, _ := after.Ad.Int(name); j.runs() && !who.Admin && was > 0 && (is == 0 || is > was) {
			return fmt.Errorf("attribute %s: %w", name, ErrRaise)
		}
	}
	switch {
	case after.Count < 1 || after.Count > roost.MaxTasks:
		return fmt.Errorf("%w: %d tasks, and 1 to %d are possible", roost.Exhausted, after.Count, roost.MaxTasks)
	case after.Count != before.Count && !j.fresh():
		return fmt.Errorf("%w: it has begun, and cannot have another number of tasks", ErrRunning)
	case len(j.classes) > maxKinds:
		return fmt.Errorf("%w: its tasks differ too much in what they began with; wait until some have ended", roost.Exhausted)
	}
	return nil
}

// fresh reports whether all tasks of a job stand as they did when it was submitted, or were held or released together.
func (j *job) fresh() bool {
	for i, s := range j.state {
		if s != j.state[0] || j.book.ref(i) != j.book.ref(0) {
			return false
		}
	}
	kind := j.book.ref(0).kind()
	return !j.state[0].Final() && (kind == kindNone || kind == kindNote)
}

// asksMore reports whether a job would be held against another quota than before, or ask for more.
func asksMore(who Submitter, before, after *Spec) bool {
	was, had, err := Ask(who, before)
	is, wants, err2 := Ask(who, after)
	if err != nil || err2 != nil || was != is {
		return true
	}
	more := wants.Sub(had)
	return more.CPU > 0 || more.Memory > 0 || more.Disk > 0 || more.GPUs > 0 || more.GPUMemory > 0 || more.Tasks > 0 || more.Open > 0
}

// AskMore is whose quota a job would be held against after an alteration, and how much more of it than now.
func (q *Queue) AskMore(e Event) (Payer, Demand) {
	j := q.jobs[e.Job]
	who := Submitter{User: j.sub.Owner, GID: j.sub.GID}
	before := Spec{Ad: q.parsed(j), Count: len(j.state), Columns: j.sub.Columns}
	after := Spec{Ad: before.Ad.Copy(), Count: before.Count, Columns: before.Columns}
	changes, err := classad.Parse(e.Submission.Ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the alteration of job %d: %v", j.seq, err)) // it was decided here
	}
	if amend(after.Ad, changes); e.Submission.Count > 0 {
		after.Count, after.Columns = e.Submission.Count, e.Submission.Columns
	}
	was, had, _ := Ask(who, &before)
	is, wants, _ := Ask(who, &after)
	if was != is || q.unasked[j.seq] { // what it has counts for another, or for nobody
		return is, wants
	}
	more := wants.Sub(had)
	more.CPU, more.Memory, more.Disk, more.GPUs = max(more.CPU, 0), max(more.Memory, 0), max(more.Disk, 0), max(more.GPUs, 0)
	more.GPUMemory, more.Tasks, more.Open = max(more.GPUMemory, 0), max(more.Tasks, 0), max(more.Open, 0)
	return is, more
}

// amend puts changes into an ad.
func amend(ad, changes *classad.Ad) {
	for name, e := range changes.All() {
		if e.String() == undefined {
			ad.Delete(name)
		} else {
			ad.Insert(name, e)
		}
	}
}

// undefined stands for what an attribute is that is to go.
const undefined = "undefined"

// difference is what makes an ad of another.
func difference(before, after *classad.Ad) *classad.Ad {
	changes := classad.New()
	for name, e := range after.All() {
		if was, ok := before.Lookup(name); !ok || was.String() != e.String() {
			changes.Insert(name, e)
		}
	}
	for _, name := range before.Names() {
		if _, ok := after.Lookup(name); !ok {
			changes.SetValue(name, classad.UndefinedValue())
		}
	}
	return changes
}

// Bounds on what the job's log says of an alteration.
const (
	maxTold      = 300
	maxValueTold = 60
)

// told says in a line what is changed. What may be secret is named and not shown.
func told(changes *classad.Ad) string {
	var parts []string
	for name, e := range changes.All() {
		value := e.String()
		switch {
		case name == roost.AttrPBS:
			continue
		case name == roost.AttrEnvironment || name == roost.AttrScript || name == roost.AttrArguments || len(value) > maxValueTold:
			parts = append(parts, name)
		default:
			parts = append(parts, name+" = "+value)
		}
	}
	text := strings.Join(parts, ", ")
	if len(text) > maxTold {
		text = strings.ToValidUTF8(text[:maxTold], "") + "…"
	}
	return text
}

// parsed is a job's ad.
func (q *Queue) parsed(j *job) *classad.Ad {
	ad, err := classad.Parse(j.sub.Ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the ad of job %d: %v", j.seq, err)) // it was taken as it is
	}
	return ad
}
