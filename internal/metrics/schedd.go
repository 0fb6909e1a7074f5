package metrics

import (
	"slices"
	"time"
)

// Schedd is the metrics of a schedd.
type Schedd struct {
	Submits            *Counter // by result
	AttemptsStarted    *Counter // by band
	AttemptsEnded      *Counter // by band and cause
	WaitTime           *Histogram
	RunTime            *Histogram
	StartError         *Histogram // by certainty
	UsefulSeconds      *Counter
	LostSeconds        *Counter // by cause
	CommitTime         *Histogram
	ClaimRefusals      *Counter // by reason
	CheckpointTime     *Histogram
	CheckpointBytes    *Counter
	CheckpointFailures *Counter
	Snapshots          *Published[ScheddSnapshot]

	ServiceRestarts    *Counter // by cause
	ServiceDisruptions *Counter // by cause
	UpdatesEnded       *Counter // by result
	AutoscaleDecisions *Counter // by direction and result
	CronInstants       *Counter // of schedules, by result

	ObjectsMoved   *Counter // by direction and result
	ObjectBytes    *Counter // by direction
	UploadsAborted *Counter

	FlockGrants *Counter // grants of other pools, by result
}

// Results of grants of other pools.
const (
	FlockClaimed = iota
	FlockRefused // by the machine, or here
)

// The directions of objects.
const (
	ObjectInput = iota
	ObjectOutput
)

// What becomes of the objects of an attempt.
const (
	ObjectsMoved   = iota
	ObjectsRefused // its user, or an administrator, has to do something
	ObjectsFailed  // another try follows
)

// Results of instants of schedules.
const (
	CronRun     = iota // the run was made
	CronSkipped        // nothing could run then, the run before had not ended, or there was no room
)

// maxFlockPools bounds the open labels of other pools.
const maxFlockPools = 16

// ScheddSnapshot is what a schedd has at one instant.
type ScheddSnapshot struct {
	Tasks                                [BandCount][StateCount]int
	OldestWaiting                        [BandCount]time.Duration
	WaitingTasks                         [WaitReasonCount]int
	Claims                               [5]int // by state: requested, idle, busy, exited, waiting
	JournalBytes                         int64
	FeedBacklog                          uint64
	ServiceTasks                         [len(serviceStates)]int
	Updates                              [len(updateStates)]int
	ScaledTasks, SizedCores, SizedMemory ScaleUse // of services that are scaled
	Allocs                               AllocTotals
	TasksElsewhere                       map[string]float64 // tasks that run in other pools, by pool
}

// AllocTotals is what the alloc sets of a schedd have, and what of that is used.
type AllocTotals struct {
	Open, Waiting int // allocs
	Tasks         int // inside
	Cores, Memory AllocUse
}

// AllocUse is how much of a resource the allocs hold, and what the tasks inside ask for.
type AllocUse struct{ Held, Inside float64 }

// allocUses are the parts of an AllocUse.
var allocUses = [...]string{"held", "inside"}

// parts lists the amounts in the order of allocUses.
func (u AllocUse) parts() [len(allocUses)]float64 { return [...]float64{u.Held, u.Inside} }

// Results of submits.
const (
	SubmitAccepted = iota
	SubmitInvalid
	SubmitDenied
	SubmitFull // a limit or a quota was reached
	SubmitFailed
)

// Reasons why a claim that a grant promised was not made.
const (
	ClaimRefused  = iota // by the machine
	ClaimSilent          // the machine did not answer
	ClaimUnwanted        // nothing waited for it any more
)

// serviceStates are the states of tasks of services. The first two have no attempt, and
// the others are those of roost.ServiceState.
var serviceStates = [...]string{"waiting", "backoff", "starting", "unready", "ready", "leaving", "lost"}

// Numbers of the states of tasks of services.
const (
	ServiceWaiting = iota
	ServiceBackoff
	ServiceFirstState // roost.ServiceStarting
)

// updateStates are the states of updates that go on, and updateResults how they end, in
// the order of their numbers in the queue.
var (
	updateStates  = [...]string{"rolling", "paused", "waiting_pulse", "waiting_promote", "undoing", "undo_paused"}
	updateResults = [...]string{"undone", "aborted", "partial", "done"}
)

// startCertainties are what estimates of starts are based on.
var startCertainties = [...]string{"walltime", "prediction", "rate", "other"}

// StartCertainty returns the number of a certainty for a label.
func StartCertainty(word string) int {
	if i := slices.Index(startCertainties[:], word); i >= 0 {
		return i
	}
	return len(startCertainties) - 1
}

// restartCauses are why tasks of services are started again. The first ones are the
// planned causes, which the budget of disruptions is charged to.
var restartCauses = [...]string{"update", "drain", "check", "exited", "limit", "launch", "preempted", "machine",
	"lost", "other"}

// Causes that the budgets of services are charged to.
const (
	DisruptedByUpdate = iota
	DisruptedByDrain
	DisruptedByCheck
	disruptionCauses
)

// NewSchedd registers the metrics of a schedd, whose state is in dir. With a nil registry
// nothing is counted.
func NewSchedd(r *Registry, dir string) *Schedd {
	s := &Schedd{
		Submits: r.Counter("submits_total", "Submits by result; one submit is one job or a group of jobs.",
			Label{Name: "result", Values: []string{"accepted", "invalid", "denied", "full", "failed"}}),
		AttemptsStarted: r.Counter("attempts_started_total", "Attempts whose processes were started.", bandLabel()),
		AttemptsEnded: r.Counter("attempts_ended_total", "Attempts that have ended, by cause.", bandLabel(),
			causeLabel()),
		WaitTime: r.Histogram("wait_seconds",
			"How long the job of a task had waited for nothing but machines when the task was assigned to one.",
			taskBuckets, bandLabel()),
		RunTime: r.Histogram("run_seconds", "How long attempts ran, as their nodes measured it.", taskBuckets,
			bandLabel()),
		StartError: r.Histogram("start_error_seconds",
			"How far off the first estimate of a start was when a task started, by what the estimate was based on.",
			taskBuckets, Label{Name: "certainty", Values: startCertainties[:]}),
		UsefulSeconds: r.Counter("useful_seconds_total",
			"Seconds of attempts that ended by themselves, or that a checkpoint had when they were interrupted."),
		LostSeconds: r.Counter("lost_seconds_total",
			"Seconds of attempts that were interrupted and that no checkpoint had stored, by cause.", causeLabel()),
		CommitTime: r.Histogram("commit_seconds", "Time to write one batch of events to the job log.", fastBuckets),
		ClaimRefusals: r.Counter("claim_refused_total", "Grants that did not become claims, by reason.",
			Label{Name: "reason", Values: []string{"refused", "silent", "unwanted"}}),
		CheckpointTime: r.Histogram("checkpoint_seconds", "How long a task stood still for a checkpoint.",
			[]float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300}),
		CheckpointBytes:    r.Counter("checkpoint_bytes_total", "Bytes of stored checkpoints, as they travelled."),
		CheckpointFailures: r.Counter("checkpoint_failures_total", "Checkpoints that could not be taken or stored."),
	}
	s.addServices(r)
	s.CronInstants = r.Counter("cron_instants_total",
		"Instants of schedules by result: run, or skipped. Consecutive instants that were missed count once.",
		Label{Name: "result", Values: []string{"run", "skipped"}})
	s.addObjects(r)
	s.FlockGrants = r.Counter("flock_grants_total",
		"Grants of machines of other pools, by what became of them: claimed, or refused by the machine or the schedd.",
		Label{Name: "result", Values: []string{"claimed", "refused"}})
	s.Snapshots = newScheddSnapshots(r)
	r.AddDisk(dir)
	r.seal()
	return s
}

// addServices registers the counters of services.
func (s *Schedd) addServices(r *Registry) {
	s.ServiceRestarts = r.Counter("service_restarts_total",
		"Attempts of services that have ended and that others follow, by reason.",
		Label{Name: "reason", Values: restartCauses[:]})
	s.ServiceDisruptions = r.Counter("service_disruptions_total",
		"Ready tasks of services that were stopped within the budget of their job, by reason.",
		Label{Name: "reason", Values: restartCauses[:disruptionCauses]})
	s.UpdatesEnded = r.Counter("service_updates_ended_total", "Updates of services that have ended, by result.",
		Label{Name: "result", Values: updateResults[:]})
	s.AutoscaleDecisions = r.Counter("autoscale_decisions_total",
		"Decisions to give services another number of tasks, or these another size, by result.",
		Label{Name: "direction", Values: []string{"horizontal", "vertical"}},
		Label{Name: "result", Values: []string{"up", "down", "refused"}})
}

// addObjects registers the counters of objects.
func (s *Schedd) addObjects(r *Registry) {
	direction := Label{Name: "direction", Values: []string{"input", "output"}}
	s.ObjectsMoved = r.Counter("objects_total",
		"Objects of object stores that were inputs or outputs of attempts, by what became of them.", direction,
		Label{Name: "result", Values: []string{"moved", "refused", "failed"}})
	s.ObjectBytes = r.Counter("object_bytes_total", "Bytes of objects that were inputs or outputs of attempts.",
		direction)
	s.UploadsAborted = r.Counter("object_uploads_aborted_total",
		"Uploads to object stores that were aborted, because their attempts were lost or refused.")
}

// IsOn reports whether anything is counted.
func (s *Schedd) IsOn() bool { return s.AttemptsEnded != nil }

func newScheddSnapshots(r *Registry) *Published[ScheddSnapshot] {
	tasks := r.Gauge("tasks", "Tasks in the queue that are not final, by state.", bandLabel(), stateLabel())
	oldest := r.Gauge("oldest_waiting_seconds",
		"Longest wait for machines of a job that comes first among those that ask for the same.", bandLabel())
	waiting := r.Gauge("waiting_tasks", "Tasks that are ready, by the reason that excludes most machines.",
		waitReasonLabel())
	claims := r.Gauge("claims", "Claims on machines, by state.",
		Label{Name: "state", Values: []string{"requested", "idle", "busy", "exited", "waiting"}})
	backlog := r.Gauge("feed_backlog_events", "Entries of the accounting feed that the accountant has not stored yet.")
	journal := r.Gauge("journal_bytes", "Bytes in the job log since its last checkpoint.")
	serviceTasks := r.Gauge("service_tasks",
		"Tasks that services are to have, by state; one that waits has no attempt yet, and one in backoff waits for "+
			"its restart.", Label{Name: "state", Values: serviceStates[:]})
	updates := r.Gauge("service_updates", "Updates of services that go on, by state.",
		Label{Name: "state", Values: updateStates[:]})
	scaling := newScaleGauges(r)
	allocs := newAllocGauges(r)
	elsewhere := r.Gauge("tasks_elsewhere", "Tasks that run in other pools, by pool.",
		Label{Name: "pool", Most: maxFlockPools})
	return newDaemonState(r, func(to *Reading, s *ScheddSnapshot) {
		allocs.set(to, s.Allocs)
		to.SetLargest(elsewhere, s.TasksElsewhere)
		scaling.set(to, s)
		for i, n := range s.ServiceTasks {
			to.Set(serviceTasks, float64(n), i)
		}
		for i, n := range s.Updates {
			to.Set(updates, float64(n), i)
		}
		for b := range s.Tasks {
			for state, n := range s.Tasks[b] {
				to.Set(tasks, float64(n), b, state)
			}
			to.Set(oldest, s.OldestWaiting[b].Seconds(), b)
		}
		for i, n := range s.WaitingTasks {
			to.Set(waiting, float64(n), i)
		}
		for i, n := range s.Claims {
			to.Set(claims, float64(n), i)
		}
		to.Set(backlog, float64(s.FeedBacklog))
		to.Set(journal, float64(s.JournalBytes))
	})
}

// allocGauges are the gauges of alloc sets.
type allocGauges struct{ allocs, tasks, cores, memory *Gauge }

func newAllocGauges(r *Registry) allocGauges {
	use := Label{Name: "use", Values: allocUses[:]}
	return allocGauges{
		allocs: r.Gauge("allocs", "Allocs, by state; one that waits has no machine.",
			Label{Name: "state", Values: []string{"waiting", "open"}}),
		tasks: r.Gauge("alloc_tasks", "Tasks that run inside allocs."),
		cores: r.Gauge("alloc_cores", "Cores that allocs hold, and what of that the tasks inside ask for.", use),
		memory: r.Gauge("alloc_memory_bytes",
			"Memory that allocs hold, and what of that the tasks inside ask for.", use),
	}
}

func (g allocGauges) set(to *Reading, a AllocTotals) {
	to.Set(g.allocs, float64(a.Waiting), 0)
	to.Set(g.allocs, float64(a.Open), 1)
	to.Set(g.tasks, float64(a.Tasks))
	for i, n := range a.Cores.parts() {
		to.Set(g.cores, n, i)
	}
	for i, n := range a.Memory.parts() {
		to.Set(g.memory, n, i)
	}
}
