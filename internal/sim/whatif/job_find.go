package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/schedd/queue"
)

// localSchedd is the schedd name of jobs that are not submitted.
const localSchedd = "(not submitted)"

// RequestsOfJobs returns the requests that a schedd would make if some jobs were
// submitted now.
func RequestsOfJobs(now time.Time, who queue.CallerIdentity,
	jobs []queue.SubmitSpec) ([]*cellstate.PendingRequest, error) {
	q := queue.New(localSchedd)
	events, _, _, err := q.SubmitJobs(now, who, "sim", jobs, queue.SubmitLimits{})
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		q.Apply(e)
	}
	var asks []*cellstate.PendingRequest
	for _, id := range q.Requests() {
		r, ok := q.Request(id)
		if !ok || r.Ready == 0 {
			continue
		}
		a := &cellstate.PendingRequest{AdText: r.Ad, Queue: r.Queue, OwnWanted: r.Ready,
			Counting: cellstate.LimitCounting(q.LimitCounting(id))}
		a.Key, a.Submitter, a.Band = match.RequestKey{Schedd: localSchedd, ID: uint64(id)},
			fairshare.Submitter{Group: r.Group, Owner: r.Owner}, r.Band
		a.Priority, a.Oldest, a.Walltime, a.PredictedRuntime, a.Reservation = int32(r.Priority), now.UnixNano(),
			r.Walltime, r.PredictedRuntime, r.Reservation
		if size, ok := q.NextGang(id); ok {
			a.Gang = size
			if lead, mixed := q.GangRequest(id); mixed {
				a.GangRequest = uint64(lead)
			}
		}
		if a.Class, err = match.NewClass(r.Ad, a.Submitter, a.Band, r.Resources); err != nil {
			return nil, err
		}
		asks = append(asks, a)
	}
	if len(asks) == 0 {
		return nil, fmt.Errorf("%w: no task of it could start now: it is held, or waits for a time or for another job",
			roost.Invalid)
	}
	return asks, nil
}

// admitToQueue puts a request into its queue, or the default one, which may set its band.
func admitToQueue(c *cellstate.CellCheckpoint, a *cellstate.PendingRequest) (*cellstate.PendingRequest, error) {
	b := *a
	if b.Queue == "" {
		b.Queue = c.Ledger.SettingText(ledger.SettingDefaultQueue)
	}
	q, ok := c.Ledger.Queue(b.Queue)
	switch {
	case b.Queue == "":
	case !ok:
		return nil, fmt.Errorf("queue %s: %w: there is none of that name", b.Queue, roost.NotFound)
	case q.Band != "":
		band, err := roost.ParsePriorityBand(q.Band)
		if err != nil {
			return nil, err
		}
		b.Band = band
	}
	return copyAsk(&b)
}

// foundJob is a job of a checkpoint: its request, and the place of its tasks in it.
type foundJob struct {
	ask          *cellstate.PendingRequest
	earlierTasks int // waiting tasks of other jobs that the request starts first
	tasks        int // waiting tasks of the job
}

// findJob finds a waiting job by its id.
func findJob(c *cellstate.CellCheckpoint, id string) (foundJob, error) {
	// the tasks of a job start in order, so one of them is answered as the whole job
	if at := strings.IndexByte(id, '['); at >= 0 {
		rest := strings.IndexByte(id, ']')
		id = id[:at] + id[max(rest, at)+1:]
	}
	i := slices.IndexFunc(c.Jobs, func(j cellstate.JobRow) bool { return j.ID == id })
	switch {
	case i < 0 && slices.ContainsFunc(c.SilentSchedds, func(node string) bool {
		return strings.HasSuffix(id, "."+node)
	}):
		return foundJob{}, fmt.Errorf("%s: %w: its schedd did not answer when the checkpoint was taken",
			id, roost.Unavailable)
	case i < 0:
		return foundJob{}, fmt.Errorf("%s: %w: no job of that name is in the queue: it has ended, or never was", id,
			roost.NotFound)
	}
	job := &c.Jobs[i]
	if job.Waiting+job.Running == 0 && job.WaitReason != "" {
		return foundJob{}, fmt.Errorf("%s: %w: it does not wait for a machine: %s", id, roost.Conflict, job.WaitReason)
	}
	if job.Waiting == 0 {
		return foundJob{}, fmt.Errorf("%s: %w: all of its tasks have started", id, roost.Conflict)
	}
	_, schedd, _ := strings.Cut(id, ".")
	key := match.RequestKey{Schedd: schedd, ID: job.Request}
	x := newIndex(c)
	f := foundJob{ask: x.byKey[key], tasks: job.Waiting}
	if f.ask == nil || f.ask.OwnWanted == 0 {
		return foundJob{}, fmt.Errorf("%s: %w: the negotiator was not asked for it when the checkpoint was taken: it "+
			"has a machine, or has only just come; take another one", id, roost.Unavailable)
	}
	before := func(a, b *cellstate.JobRow) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Submitted, b.Submitted),
			cmp.Compare(a.ID, b.ID))
	}
	for k := range c.Jobs {
		o := &c.Jobs[k]
		if _, s, _ := strings.Cut(o.ID, "."); s == schedd && o.Request == job.Request && before(o, job) < 0 {
			f.earlierTasks += o.Waiting
		}
	}
	return f, nil
}
