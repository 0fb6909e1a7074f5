package jobad

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// MaxGangSize bounds how many tasks start together: as many claims have to be there at
// once.
const MaxGangSize = 2048

// maxMPIGangSize bounds how many tasks an array of led gangs has. Each gang makes
// requests of its own.
const maxMPIGangSize = 40_000

// CheckGang refuses a job whose tasks cannot be parted into gangs.
func CheckGang(p *JobSpec, spec *SubmitSpec) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("attribute %s: %w: %s", roost.AttrGangSize, roost.Invalid, fmt.Sprintf(format, args...))
	}
	stream := p.AppClass == roost.AppStream && spec.Count > 1 && p.Service == nil
	switch {
	case p.softConstraints.exclusive && p.AppClass == roost.AppStream:
		return fmt.Errorf("attribute %s: %w: stream tasks share their machines with batch", roost.AttrExclusive,
			roost.Invalid)
	case p.MPIGang && (p.GangSize < 2 || p.GangSize != spec.Count && !p.Array || p.AppClass == roost.AppStream):
		return fmt.Errorf("attribute %s: %w: a gang with a leader is all tasks of a batch job, or of a task of "+
			"an array, two at least", roost.AttrMPIGang, roost.Invalid)
	case p.MPIGang && spec.Count > maxMPIGangSize:
		return fmt.Errorf("%w: an array of %d tasks of %d parts each; %d parts are the most", roost.Exhausted,
			spec.Count/p.GangSize, p.GangSize, maxMPIGangSize)
	case stream && p.GangSize < 2:
		return checkStream(p, spec)
	case p.GangSize < 2:
		return nil
	case p.GangSize > MaxGangSize:
		return bad("%d tasks start together, and %d is the most", p.GangSize, MaxGangSize)
	case spec.Count%p.GangSize != 0:
		return bad("%d tasks are no whole number of gangs of %d", spec.Count, p.GangSize)
	case p.MaxRunning > 0 && !p.MPIGang:
		return bad("a job of gangs has no use for %s: submit fewer tasks", roost.AttrMaxRunning)
	case stream && p.GangSize != spec.Count:
		return bad("the %d tasks of a stream job start together: leave it out", spec.Count)
	}
	if name := firstDifferingColumn(spec.Columns); name != "" && !p.MPIGang {
		return bad("all tasks of a job of gangs ask for the same, and column %s says otherwise", name)
	}
	return checkSavedTogether(p, spec)
}

// checkSavedTogether refuses a gang that would save its own state in a way that cannot
// work.
func checkSavedTogether(p *JobSpec, spec *SubmitSpec) error {
	self, _ := spec.Ad.Bool(roost.AttrCheckpointSelf)
	switch {
	case self && p.MPIGang:
		return fmt.Errorf("attribute %s: %w: an MPI gang is not saved, because only its first task has a program that "+
			"could end; leave the checkpoints out, or let each task run the program (no %s)", roost.AttrCheckpointSelf,
			roost.Invalid, roost.AttrMPIGang)
	case p.Checkpoints != nil && p.Checkpoints.Self && p.Checkpoints.ExitCode == 0:
		return fmt.Errorf("attribute %s: %w: the tasks of a gang are saved together, and each says with this exit "+
			"code that it has saved its state; set it to what the program ends with then, as 85",
			roost.AttrCheckpointCode, roost.Invalid)
	}
	return nil
}

// MPIByPMI1 is the one protocol by which the ranks of an MPI program can be started.
const MPIByPMI1 = "pmi1"

// maxTaskRanks bounds the ranks of a task of an MPI program.
const maxTaskRanks = 4096

// checkMPI refuses an MPI program whose ranks cannot be started.
func (r *adReader) checkMPI(p *JobSpec) {
	switch {
	case p.MPI == "":
	case p.MPI != MPIByPMI1:
		r.fail(roost.AttrMPI, fmt.Sprintf("%q is not %s, which MPICH, Intel MPI, MVAPICH and Flux speak; Open MPI is "+
			"started by mpirun in a gang that is led", p.MPI, MPIByPMI1))
	case p.MPIGang:
		r.fail(roost.AttrMPI, "in a gang that is led the first task starts the others: leave out one of the two")
	case p.AppClass == roost.AppStream || p.Service != nil || p.IsAlloc || p.Interactive:
		r.fail(roost.AttrMPI, "only batch jobs that are not interactive have ranks")
	case p.Container != nil:
		r.fail(roost.AttrMPI, "ranks are not started in container images yet: leave out the image, or start them by "+
			"mpiexec in a gang that is led")
	case p.Processes > maxTaskRanks:
		r.fail(roost.AttrProcesses, fmt.Sprintf("a task has %d ranks at most", maxTaskRanks))
	}
}

// checkStream refuses a stream job whose tasks cannot start together.
func checkStream(p *JobSpec, spec *SubmitSpec) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("attribute %s: %w: the tasks of a stream job start together, and %s", roost.AttrAppClass,
			roost.Invalid, fmt.Sprintf(format, args...))
	}
	if name := firstDifferingColumn(spec.Columns); name != "" {
		return bad("so all ask for the same, but column %s says otherwise; submit a job for each kind", name)
	}
	switch {
	case spec.Count > MaxGangSize:
		return bad("%d is the most: submit several jobs instead of one of %d", MaxGangSize, spec.Count)
	case p.MaxRunning > 0:
		return bad("so it has no use for %s: submit fewer tasks", roost.AttrMaxRunning)
	}
	return nil
}

// firstDifferingColumn is the first column by which tasks ask for different things; empty
// if there is none.
func firstDifferingColumn(columns []TaskColumn) string {
	for _, c := range columns {
		// which is nothing of the machine's
		if IsOverridable(c.Name) && c.Name != roost.AttrProcesses {
			return c.Name
		}
	}
	return ""
}

// StartTogether is how many tasks of a job start together; 0 where each does for itself.
// Stream jobs from before they did may be such that they cannot. The tasks of a service
// are kept running one by one.
func (p *JobSpec) StartTogether(count int, columns []TaskColumn) (size int, loose bool) {
	switch {
	case p.GangSize > 1:
		return p.GangSize, false
	case p.Service != nil || p.AppClass != roost.AppStream || count < 2 || count > MaxGangSize || p.MaxRunning > 0 ||
		firstDifferingColumn(columns) != "":
		return 0, false
	}
	return count, true
}

func (p *JobSpec) TasksPerIndex() int {
	if p.MPIGang && p.Array && p.GangSize > 1 {
		return p.GangSize
	}
	return 1
}
