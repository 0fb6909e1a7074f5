package metrics

import (
	"time"
)

// Schedd is the metrics of a schedd.
type Schedd struct {
	Submits            *Counter // by result
	AttemptsStarted    *Counter // by band
	AttemptsEnded      *Counter // by band and cause
	WaitTime           *Histogram
	RunTime            *Histogram
	UsefulSeconds      *Counter
	LostSeconds        *Counter // by cause
	CommitTime         *Histogram
	ClaimRefusals      *Counter // by reason
	CheckpointTime     *Histogram
	CheckpointBytes    *Counter
	CheckpointFailures *Counter
	Snapshots          *Published[ScheddSnapshot]
}

// ScheddSnapshot is what a schedd has at one instant.
type ScheddSnapshot struct {
	Tasks         [BandCount][StateCount]int
	OldestWaiting [BandCount]time.Duration
	WaitingTasks  [WaitReasonCount]int
	Claims        [5]int // by state: requested, idle, busy, exited, waiting
	JournalBytes  int64
	FeedBacklog   uint64
}

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
	s.Snapshots = newScheddSnapshots(r)
	r.AddDisk(dir)
	r.seal()
	return s
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
	return newDaemonState(r, func(to *Reading, s *ScheddSnapshot) {
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
