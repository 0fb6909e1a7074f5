package store

import "github.com/roost-batch/roost/internal/accounting"

// selectionKind is which of the statements for selections is meant.
type selectionKind struct {
	by   accounting.TimeField
	desc bool
	of   selectedOf
}

// selectedOf is the name that a statement is for, so that an index serves it.
type selectedOf uint8

const (
	ofAll selectedOf = iota
	ofOwner
	ofNode
)

// The pieces of the statements for attempts. $1 and $2 are the range, $3 to $8 the
// position to continue after, $9 the limit, and $10 the owner or node.
const (
	selectAttempts = `SELECT ` + attemptColumns + `, ` + jobColumns + `
FROM attempt a LEFT JOIN job j ON j.month = a.month AND j.source = a.source AND j.seq = a.seq`
	selectJobsAttempts = `SELECT ` + attemptColumns + `, ` + jobColumns + `
FROM job j JOIN attempt a ON a.month = j.month AND a.source = j.source AND a.seq = j.seq`
	andOwner = ` AND a.owner = $10`
	andNode  = ` AND a.node = $10`

	endedAfter = ` WHERE a.ended >= $1 AND a.ended < $2
 AND (a.ended, a.month, a.source, a.seq, a.idx, a.attempt) > ($3, $4, $5, $6, $7, $8)`
	endedBefore = ` WHERE a.ended >= $1 AND a.ended < $2
 AND (a.ended, a.month, a.source, a.seq, a.idx, a.attempt) < ($3, $4, $5, $6, $7, $8)`
	endedOrder  = ` ORDER BY a.ended, a.month, a.source, a.seq, a.idx, a.attempt LIMIT $9`
	endedLatest = ` ORDER BY a.ended DESC, a.month DESC, a.source DESC, a.seq DESC, a.idx DESC, a.attempt DESC LIMIT $9`

	startedAfter = ` WHERE a.started >= $1 AND a.started < $2
 AND (a.started, a.month, a.source, a.seq, a.idx, a.attempt) > ($3, $4, $5, $6, $7, $8)`
	startedBefore = ` WHERE a.started >= $1 AND a.started < $2
 AND (a.started, a.month, a.source, a.seq, a.idx, a.attempt) < ($3, $4, $5, $6, $7, $8)`
	startedOrder  = ` ORDER BY a.started, a.month, a.source, a.seq, a.idx, a.attempt LIMIT $9`
	startedLatest = ` ORDER BY a.started DESC, a.month DESC, a.source DESC, a.seq DESC, a.idx DESC, a.attempt DESC LIMIT $9`

	submittedAfter = ` WHERE j.submitted >= $1 AND j.submitted < $2
 AND (j.submitted, a.month, a.source, a.seq, a.idx, a.attempt) > ($3, $4, $5, $6, $7, $8)`
	submittedBefore = ` WHERE j.submitted >= $1 AND j.submitted < $2
 AND (j.submitted, a.month, a.source, a.seq, a.idx, a.attempt) < ($3, $4, $5, $6, $7, $8)`
	submittedOrder  = ` ORDER BY j.submitted, a.month, a.source, a.seq, a.idx, a.attempt LIMIT $9`
	submittedLatest = ` ORDER BY j.submitted DESC, a.month DESC, a.source DESC, a.seq DESC, a.idx DESC, a.attempt DESC LIMIT $9`
)

// attemptSelections returns the statements for attempts.
func attemptSelections() map[selectionKind]string {
	return map[selectionKind]string{
		{accounting.ByEnd, false, ofAll}:      selectAttempts + endedAfter + endedOrder,
		{accounting.ByEnd, true, ofAll}:       selectAttempts + endedBefore + endedLatest,
		{accounting.ByEnd, false, ofOwner}:    selectAttempts + endedAfter + andOwner + endedOrder,
		{accounting.ByEnd, true, ofOwner}:     selectAttempts + endedBefore + andOwner + endedLatest,
		{accounting.ByEnd, false, ofNode}:     selectAttempts + endedAfter + andNode + endedOrder,
		{accounting.ByEnd, true, ofNode}:      selectAttempts + endedBefore + andNode + endedLatest,
		{accounting.ByStart, false, ofAll}:    selectAttempts + startedAfter + startedOrder,
		{accounting.ByStart, true, ofAll}:     selectAttempts + startedBefore + startedLatest,
		{accounting.ByStart, false, ofOwner}:  selectAttempts + startedAfter + andOwner + startedOrder,
		{accounting.ByStart, true, ofOwner}:   selectAttempts + startedBefore + andOwner + startedLatest,
		{accounting.ByStart, false, ofNode}:   selectAttempts + startedAfter + andNode + startedOrder,
		{accounting.ByStart, true, ofNode}:    selectAttempts + startedBefore + andNode + startedLatest,
		{accounting.BySubmit, false, ofAll}:   selectJobsAttempts + submittedAfter + submittedOrder,
		{accounting.BySubmit, true, ofAll}:    selectJobsAttempts + submittedBefore + submittedLatest,
		{accounting.BySubmit, false, ofOwner}: selectJobsAttempts + submittedAfter + andOwner + submittedOrder,
		{accounting.BySubmit, true, ofOwner}:  selectJobsAttempts + submittedBefore + andOwner + submittedLatest,
		{accounting.BySubmit, false, ofNode}:  selectJobsAttempts + submittedAfter + andNode + submittedOrder,
		{accounting.BySubmit, true, ofNode}:   selectJobsAttempts + submittedBefore + andNode + submittedLatest,
	}
}

// The pieces of the statements for jobs. $1 and $2 are the range, $3 to $6 the position
// to continue after, $7 the limit, and $8 the owner.
const (
	selectJobs  = `SELECT ` + jobColumns + ` FROM job j`
	andJobOwner = ` AND j.owner = $8`

	jobEndedAfter  = ` WHERE j.ended >= $1 AND j.ended < $2 AND (j.ended, j.month, j.source, j.seq) > ($3, $4, $5, $6)`
	jobEndedBefore = ` WHERE j.ended >= $1 AND j.ended < $2 AND (j.ended, j.month, j.source, j.seq) < ($3, $4, $5, $6)`
	jobEndedOrder  = ` ORDER BY j.ended, j.month, j.source, j.seq LIMIT $7`
	jobEndedLatest = ` ORDER BY j.ended DESC, j.month DESC, j.source DESC, j.seq DESC LIMIT $7`

	jobEligibleAfter  = ` WHERE j.eligible >= $1 AND j.eligible < $2 AND (j.eligible, j.month, j.source, j.seq) > ($3, $4, $5, $6)`
	jobEligibleBefore = ` WHERE j.eligible >= $1 AND j.eligible < $2 AND (j.eligible, j.month, j.source, j.seq) < ($3, $4, $5, $6)`
	jobEligibleOrder  = ` ORDER BY j.eligible, j.month, j.source, j.seq LIMIT $7`
	jobEligibleLatest = ` ORDER BY j.eligible DESC, j.month DESC, j.source DESC, j.seq DESC LIMIT $7`

	jobSubmittedAfter  = ` WHERE j.submitted >= $1 AND j.submitted < $2 AND (j.submitted, j.month, j.source, j.seq) > ($3, $4, $5, $6)`
	jobSubmittedBefore = ` WHERE j.submitted >= $1 AND j.submitted < $2 AND (j.submitted, j.month, j.source, j.seq) < ($3, $4, $5, $6)`
	jobSubmittedOrder  = ` ORDER BY j.submitted, j.month, j.source, j.seq LIMIT $7`
	jobSubmittedLatest = ` ORDER BY j.submitted DESC, j.month DESC, j.source DESC, j.seq DESC LIMIT $7`
)

// jobSelections returns the statements for jobs.
func jobSelections() map[selectionKind]string {
	return map[selectionKind]string{
		{accounting.ByEnd, false, ofAll}:      selectJobs + jobEndedAfter + jobEndedOrder,
		{accounting.ByEnd, true, ofAll}:       selectJobs + jobEndedBefore + jobEndedLatest,
		{accounting.ByEnd, false, ofOwner}:    selectJobs + jobEndedAfter + andJobOwner + jobEndedOrder,
		{accounting.ByEnd, true, ofOwner}:     selectJobs + jobEndedBefore + andJobOwner + jobEndedLatest,
		{accounting.ByStart, false, ofAll}:    selectJobs + jobEligibleAfter + jobEligibleOrder,
		{accounting.ByStart, true, ofAll}:     selectJobs + jobEligibleBefore + jobEligibleLatest,
		{accounting.ByStart, false, ofOwner}:  selectJobs + jobEligibleAfter + andJobOwner + jobEligibleOrder,
		{accounting.ByStart, true, ofOwner}:   selectJobs + jobEligibleBefore + andJobOwner + jobEligibleLatest,
		{accounting.BySubmit, false, ofAll}:   selectJobs + jobSubmittedAfter + jobSubmittedOrder,
		{accounting.BySubmit, true, ofAll}:    selectJobs + jobSubmittedBefore + jobSubmittedLatest,
		{accounting.BySubmit, false, ofOwner}: selectJobs + jobSubmittedAfter + andJobOwner + jobSubmittedOrder,
		{accounting.BySubmit, true, ofOwner}:  selectJobs + jobSubmittedBefore + andJobOwner + jobSubmittedLatest,
	}
}
