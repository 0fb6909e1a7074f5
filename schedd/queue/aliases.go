package queue

import "github.com/roost-batch/roost/schedd/queue/jobad"

// The callers of a queue know what they submit by these names.
type (
	// SubmitSpec is a job as it is to be submitted.
	SubmitSpec = jobad.SubmitSpec
	// TaskColumn holds one value for each task.
	TaskColumn = jobad.TaskColumn
	// UniformTasks counts tasks of a job that ask for the same.
	UniformTasks = jobad.UniformTasks
	// ProcessLimits are what the processes of a task may use.
	ProcessLimits = jobad.ProcessLimits
	// CheckpointPolicy is what a machine does about checkpoints of an attempt.
	CheckpointPolicy = jobad.CheckpointPolicy
)

// MaxGangSize bounds how many tasks start together.
const MaxGangSize = jobad.MaxGangSize

// TaskKinds lists what the tasks of a job that is about to be submitted ask for.
func TaskKinds(spec *SubmitSpec) ([]UniformTasks, error) { return jobad.TaskKinds(spec) }
