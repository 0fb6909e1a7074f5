package audit

// UndoGuarantee is S5.
const UndoGuarantee = ScheduleGuarantee + 1

// knownRevision is a revision of a service as its tasks were first to get it.
type knownRevision struct {
	digest uint64
	tasks  int
}

// checkRevisionAd checks S5 when the tasks of a service are to get a revision. One that
// they were to get before is the same bit for bit, and has as many tasks, unless their
// number follows a load.
func (a *Auditor) checkRevisionAd(j *auditedJob, s *Event) {
	x := j.service
	if x.revisions == nil {
		x.revisions = map[uint32]knownRevision{}
	}
	is := knownRevision{digest: s.Digest, tasks: s.Tasks}
	was, known := x.revisions[s.Revision]
	if !known {
		x.revisions[s.Revision] = is
		return
	}
	if x.MaxTasks > 0 {
		was.tasks = is.tasks
	}
	if is != was {
		a.addViolation(UndoGuarantee, serviceHistory(s.Job), "the tasks of %v are to get revision %d with the ad "+
			"%016x and %d tasks, and it was %016x with %d", s.Job, s.Revision, is.digest, is.tasks, was.digest,
			was.tasks)
	}
}
