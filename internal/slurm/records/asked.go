package records

import (
	"cmp"
	"strconv"

	"github.com/roost-batch/roost"
)

// A job of sbatch has what it asked for in Slurm's words in an ad of its own (package
// internal/slurm/sbatch). Other jobs have none, and the values of these functions are
// what can be said of any job.

// asked is a text of a job's request; empty: it is not there.
func (j *Job) asked(name string) string {
	record, ok := j.Ad.Sub(roost.AttrSlurm)
	if !ok {
		return ""
	}
	text, _ := record.Str(name)
	return text
}

// askedNumber is a number of a job's request; 0: it is not there.
func (j *Job) askedNumber(name string) int64 {
	record, ok := j.Ad.Sub(roost.AttrSlurm)
	if !ok {
		return 0
	}
	n, _ := record.Int(name)
	return n
}

// Tasks is how many tasks the job's steps have unless they say otherwise.
func (j *Job) Tasks() int64 { return cmp.Or(j.askedNumber("NumTasks"), int64(j.NodeCount())) }

// cpusPerTask is how many CPUs each of them has.
func (j *Job) cpusPerTask() int64 {
	return cmp.Or(j.askedNumber("CPUsPerTask"), max(j.CPUs()/max(j.Tasks(), 1), 1))
}

// nice is by how much the job's priority was lowered.
func (j *Job) nice() int64 { return j.askedNumber("Nice") }

// askedText is a text of the request as a field of squeue.
func askedText(name string) func(*Job, *Clock) string {
	return of(func(j *Job) string { return orNull(j.asked(name)) })
}

// licenses are the licences that the job asks for, as "name:2".
func (j *Job) licenses() string { return j.asked("Licenses") }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
