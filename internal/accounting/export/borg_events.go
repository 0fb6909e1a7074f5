package export

import (
	"io"
	"iter"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// borgEventType is the type of an event of a collection or an instance. The numbers are
// of the format.
type borgEventType int32

const (
	borgSubmit borgEventType = iota
	borgQueue
	borgEnable
	borgSchedule
	borgEvict
	borgFail
	borgFinish
	borgKill
	borgLost
)

// borgEvent is an event of a collection, or of an instance of it.
type borgEvent struct {
	time       int64
	kind       borgEventType
	collection *borgCollection
	index      int
	machine    int64
}

// borgCollection is a job with the hashes of its names, which all of its events share.
type borgCollection struct {
	*accounting.JobEntry
	id                      int64
	user, name, logicalName string
}

// borgEnd returns the type of the end of an attempt. What the pool, the machine or its
// owner ended was evicted: its instance is submitted again.
func borgEnd(a *accounting.AttemptEntry) borgEventType {
	switch {
	case a.Cause == accounting.EndedRemoval:
		return borgKill
	case !a.Cause.IsCharged():
		return borgEvict
	case a.HasSucceeded():
		return borgFinish
	}
	return borgFail
}

// borgPriorities are priorities of the middle of the tiers of 2019, by band.
func borgPriorities() []int64 {
	return []int64{roost.FreeBand: 25, roost.BatchBand: 112, roost.ProductionBand: 200, roost.MonitoringBand: 360}
}

// commonColumns are the columns that events of collections and instances begin with.
func (t *BorgTrace) commonColumns() []Column[borgEvent] {
	priorities := borgPriorities()
	return []Column[borgEvent]{
		{Name: "time", About: "microseconds; the trace begins at 600,000,000; 0 is before it, 2^63-1 after it",
			value: func(e *borgEvent) cell { return integerOf(e.time) }},
		{Name: "type", About: "0 SUBMIT to 8 LOST, as in the format",
			value: func(e *borgEvent) cell { return integerOf(e.kind) }},
		{Name: "collection_id", About: "number of the job, from a hash of its id",
			value: func(e *borgEvent) cell { return integerOf(e.collection.id) }},
		{Name: "scheduling_class", About: "0 free, 1 batch, 2 production, 3 monitoring",
			value: func(e *borgEvent) cell { return integerOf(min(int(e.collection.Band), 3)) }},
		constant[borgEvent]("missing_type", "0: nothing is missing", 0),
		constant[borgEvent]("collection_type", "0: a job", 0),
		{Name: "priority", About: "25 free, 112 batch, 200 production, 360 monitoring", value: func(e *borgEvent) cell {
			return integerOf(priorities[min(int(e.collection.Band), len(priorities)-1)])
		}},
		constant[borgEvent]("alloc_collection_id", "0: in no alloc set", 0),
	}
}

// collectionTable returns the table of events of jobs.
func (t *BorgTrace) collectionTable() *Table[borgEvent] {
	return &Table[borgEvent]{Name: "collection_events", Columns: append(t.commonColumns(), []Column[borgEvent]{
		{Name: "user", About: "hash of the owner", value: func(e *borgEvent) cell { return textOf(e.collection.user) }},
		{Name: "collection_name", About: "hash of the name of the job",
			value: func(e *borgEvent) cell { return textOf(e.collection.name) }},
		{Name: "collection_logical_name", About: "hash of the name without numbers and separators at its ends",
			value: func(e *borgEvent) cell { return textOf(e.collection.logicalName) }},
		noValue[borgEvent]("parent_collection_id"),
		noValue[borgEvent]("start_after_collection_ids"),
		noValue[borgEvent]("max_per_machine"),
		noValue[borgEvent]("max_per_switch"),
		constant[borgEvent]("vertical_scaling", "0: not known", 0),
		{Name: "scheduler", About: "1 free and batch, 0 the others", value: func(e *borgEvent) cell {
			if e.collection.Band.IsProd() {
				return integerOf(0)
			}
			return integerOf(1) // for batch loads
		}},
	}...)}
}

// instanceTable returns the table of events of tasks.
func (t *BorgTrace) instanceTable() *Table[borgEvent] {
	return &Table[borgEvent]{Name: "instance_events", Columns: append(t.commonColumns(), []Column[borgEvent]{
		{Name: "instance_index", About: "index of the task, from 0",
			value: func(e *borgEvent) cell { return integerOf(e.index) }},
		{Name: "machine_id", About: "number of the machine, from a hash of its name; 0: none",
			value: func(e *borgEvent) cell { return integerOf(e.machine) }},
		constant[borgEvent]("alloc_instance_index", "-1: in no alloc set", -1),
		{Name: "resource_request.cpus", About: "CPUs that one task asked for",
			value: func(e *borgEvent) cell { return t.cpus(e.collection.Request.CPU) }},
		{Name: "resource_request.memory", About: "memory that one task asked for",
			value: func(e *borgEvent) cell { return t.memory(e.collection.Request.Memory) }},
		noValue[borgEvent]("constraint"),
	}...)}
}

// borgEventWriter writes the events of jobs and of their tasks in one pass. Events of one
// collection or instance are in the order of time; different ones are not.
type borgEventWriter struct {
	*BorgTrace
	collections borgTable[borgEvent]
	instances   borgTable[borgEvent]

	job       borgCollection
	scheduled accounting.Millis // first start of a task
	failed    bool              // a task ended with a failure
	next      int               // index of the next task without events
	last      accounting.AttemptEntry
	err       error
}

// WriteEvents writes collection_events and instance_events. Jobs and attempts come in the
// order of submission and of key, as [accounting.Reader] gives them by BySubmit.
func (t *BorgTrace) WriteEvents(collections, instances io.Writer, jobs iter.Seq2[accounting.JobEntry, error],
	attempts iter.Seq2[accounting.AttemptRecord, error],
) error {
	w := &borgEventWriter{BorgTrace: t, collections: newBorgTable(t.collectionTable(), collections),
		instances: newBorgTable(t.instanceTable(), instances)}
	if err := joinJobs(jobs, attempts, w.beginJob, w.attempt, w.endJob); err != nil {
		return err
	}
	if err := w.collections.finish(); err != nil {
		return err
	}
	return w.instances.finish()
}

// write writes an event, unless its time is not known.
func (w *borgEventWriter) write(to *borgTable[borgEvent], kind borgEventType, at accounting.Millis, index int,
	node string,
) {
	if at == 0 || w.err != nil {
		return
	}
	w.err = to.write(&borgEvent{w.time(at), kind, &w.job, index, w.machine(node)})
}

// submit writes the events from the submission on.
func (w *borgEventWriter) submit(to *borgTable[borgEvent], index int) {
	w.write(to, borgSubmit, w.job.Submitted, index, "")
	if w.job.Eligible > w.job.Submitted {
		w.write(to, borgQueue, w.job.Submitted, index, "")
		w.write(to, borgEnable, w.job.Eligible, index, "")
	}
}

func (w *borgEventWriter) beginJob(j *accounting.JobEntry) error {
	w.job = borgCollection{j, w.collection(&j.JobKey), w.name("user", j.Owner), w.name("name", j.Name),
		w.name("logical name", strings.Trim(j.Name, "0123456789.-_"))}
	w.scheduled, w.failed, w.next, w.last = 0, false, 0, accounting.AttemptEntry{}
	w.submit(&w.collections, 0)
	return w.err
}

func (w *borgEventWriter) attempt(a *accounting.AttemptRecord) error {
	if w.last.Attempt != 0 && a.Index == w.last.Index {
		w.write(&w.instances, borgSubmit, w.last.Ended, a.Index, "")
	} else {
		w.endTask()
		w.idleTasks(a.Index)
		w.submit(&w.instances, a.Index)
		w.next = a.Index + 1
	}
	w.write(&w.instances, borgSchedule, a.Started, a.Index, a.Node)
	if a.Cause != accounting.NotEnded {
		w.write(&w.instances, borgEnd(&a.AttemptEntry), max(a.Ended, a.Started), a.Index, a.Node)
	}
	if a.Started != 0 && (w.scheduled == 0 || a.Started < w.scheduled) {
		w.scheduled = a.Started
	}
	w.last = a.AttemptEntry
	return w.err
}

// endTask ends the task whose last attempt has passed.
func (w *borgEventWriter) endTask() {
	if w.last.Attempt == 0 {
		return
	}
	if w.last.Cause == accounting.NotEnded { // and yet the job may have ended
		w.write(&w.instances, borgLost, w.job.Ended, w.last.Index, w.last.Node)
		return
	}
	switch end := borgEnd(&w.last); {
	case end == borgFail:
		w.failed = true
	case end == borgEvict && w.job.Ended != 0: // it waited for its next attempt
		w.write(&w.instances, borgSubmit, w.last.Ended, w.last.Index, "")
		w.write(&w.instances, borgKill, max(w.job.Ended, w.last.Ended), w.last.Index, "")
	}
}

// idleTasks writes the events of the tasks up to an index, which never ran.
func (w *borgEventWriter) idleTasks(end int) {
	for ; w.next < end && w.err == nil; w.next++ {
		w.submit(&w.instances, w.next)
		w.write(&w.instances, borgKill, w.job.Ended, w.next, "")
	}
}

func (w *borgEventWriter) endJob() error {
	w.endTask()
	w.idleTasks(min(w.job.Tasks, roost.MaxTasks))
	w.write(&w.collections, borgSchedule, w.scheduled, 0, "")
	end := borgFinish
	switch {
	case w.job.Removed || w.scheduled == 0:
		end = borgKill
	case w.failed:
		end = borgFail
	}
	w.write(&w.collections, end, w.job.Ended, 0, "")
	return w.err
}
