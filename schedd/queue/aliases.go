package queue

import (
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// The callers of a queue know what goes in and comes out by these names.
type (
	// SubmitSpec is a job as it is to be submitted.
	SubmitSpec = jobad.SubmitSpec
	// FlowSubmission is the flow of a job that is one.
	FlowSubmission = jobad.FlowSubmission
	// TaskColumn holds one value for each task.
	TaskColumn = jobad.TaskColumn
	// UniformTasks counts tasks of a job that ask for the same.
	UniformTasks = jobad.UniformTasks
	// HealthCheck is what a job says of a health check.
	HealthCheck = jobad.HealthCheck
	// ServiceSpec is what a job says of being a service.
	ServiceSpec = jobad.ServiceSpec
	// LogSpec is how much captured output of the tasks of a service is kept.
	LogSpec = jobad.LogSpec
	// ProcessLimits are what the processes of a task may use.
	ProcessLimits = jobad.ProcessLimits
	// CheckpointPolicy is what a machine does about checkpoints of an attempt.
	CheckpointPolicy = jobad.CheckpointPolicy

	// JobEvent is a fact about one job.
	JobEvent = eventlog.JobEvent
	// EventType says what happened.
	EventType = eventlog.EventType
	// JobSnapshot is the record of one job on disk.
	JobSnapshot = eventlog.JobSnapshot
	// SubmittedJob is what was submitted.
	SubmittedJob = eventlog.SubmittedJob
	// IndexRange is the indexes First to Last, both included.
	IndexRange = eventlog.IndexRange
	// AttemptExit is how an attempt ended.
	AttemptExit = eventlog.AttemptExit
	// StoredOutput names the output of an attempt that is on the checkpoint server.
	StoredOutput = eventlog.StoredOutput
	// ExitCause says why an attempt ended.
	ExitCause = eventlog.ExitCause
	// ResourceUsage is what an attempt used beside time.
	ResourceUsage = eventlog.ResourceUsage
	// CheckpointImage is a checkpoint of a task.
	CheckpointImage = eventlog.CheckpointImage
	// CPUUsage is time that was spent, in nanoseconds.
	CPUUsage = eventlog.CPUUsage
)

// Types of events, see package eventlog.
const (
	Submitted        = eventlog.Submitted
	Assigned         = eventlog.Assigned
	Started          = eventlog.Started
	Ended            = eventlog.Ended
	Lost             = eventlog.Lost
	Held             = eventlog.Held
	RemovalRequested = eventlog.RemovalRequested
	Dropped          = eventlog.Dropped
	Retried          = eventlog.Retried
	Purged           = eventlog.Purged
	Checkpointed     = eventlog.Checkpointed
	CheckpointFailed = eventlog.CheckpointFailed
	Altered          = eventlog.Altered
	Revised          = eventlog.Revised
	Ticked           = eventlog.Ticked
	TickSkipped      = eventlog.TickSkipped
	BecameReady      = eventlog.BecameReady
	BecameUnready    = eventlog.BecameUnready
	UpdateChanged    = eventlog.UpdateChanged
	Replaced         = eventlog.Replaced
	Evicted          = eventlog.Evicted
	BackoffEnded     = eventlog.BackoffEnded
	Scaled           = eventlog.Scaled
	FlowAdvanced     = eventlog.FlowAdvanced
	Resumed          = eventlog.Resumed
	Suspended        = eventlog.Suspended
	Released         = eventlog.Released
	SurgeChanged     = eventlog.SurgeChanged
	Resized          = eventlog.Resized
	ResizeRefused    = eventlog.ResizeRefused
	Returned         = eventlog.Returned
)

// Causes of ends, see package eventlog.
const (
	CauseExited        = eventlog.CauseExited
	CauseWalltime      = eventlog.CauseWalltime
	CauseRemoval       = eventlog.CauseRemoval
	CauseVacate        = eventlog.CauseVacate
	CauseLaunch        = eventlog.CauseLaunch
	CauseMachine       = eventlog.CauseMachine
	CauseMemory        = eventlog.CauseMemory
	CauseGPUMemory     = eventlog.CauseGPUMemory
	CauseDisk          = eventlog.CauseDisk
	CauseRestore       = eventlog.CauseRestore
	CausePreemption    = eventlog.CausePreemption
	CauseCPUTime       = eventlog.CauseCPUTime
	CauseVirtualMemory = eventlog.CauseVirtualMemory
	CausePrologue      = eventlog.CausePrologue
)

// What a new revision of a service does to its tasks, see package jobad.
const (
	NoEffect   = jobad.NoEffect
	InPlace    = jobad.InPlace
	ResizeTask = jobad.ResizeTask
	MatchTask  = jobad.MatchTask
)

// MaxGangSize bounds how many tasks start together.
const MaxGangSize = jobad.MaxGangSize

// TaskKinds lists what the tasks of a job that is about to be submitted ask for.
func TaskKinds(spec *SubmitSpec) ([]UniformTasks, error) { return jobad.TaskKinds(spec) }

// AppendEvent adds the form of an event on disk to buf.
func AppendEvent(buf []byte, e *JobEvent) []byte { return eventlog.AppendEvent(buf, e) }

// DecodeEvent reads what AppendEvent wrote.
func DecodeEvent(b []byte) (JobEvent, error) { return eventlog.DecodeEvent(b) }

// DecodeSnapshot reads what Queue.Snapshot wrote. The result shares no memory with b.
func DecodeSnapshot(b []byte) (*JobSnapshot, error) { return eventlog.DecodeSnapshot(b) }

// EncodedJob is the job that an encoded event is about; 0 for what is no event.
func EncodedJob(b []byte) uint64 { return eventlog.EncodedJob(b) }

// DecodeSubmission reads the submission of a snapshot, for the history.
func DecodeSubmission(snapshot []byte) (JobEvent, error) { return eventlog.DecodeSubmission(snapshot) }
