package picture

import (
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// What stands in a checkpoint, a row each. roost-cell-checkpoint(5) describes them: a field that has got another meaning there is another field.

// resources is roost.Resources with names for the file.
type resources struct {
	CPU       roost.MilliCPU `json:"milli_cpus,omitempty"`
	Memory    roost.Bytes    `json:"memory_bytes,omitempty"`
	Disk      roost.Bytes    `json:"disk_bytes,omitempty"`
	GPUs      int            `json:"gpus,omitempty"`
	GPUMemory roost.Bytes    `json:"gpu_memory_bytes,omitempty"`
}

type machineRow struct {
	Name     string     `json:"name"`
	Started  int64      `json:"started,omitempty"`
	Sequence uint64     `json:"sequence,omitempty"`
	Ad       string     `json:"ad"` // without Claims
	Claims   []claimRow `json:"claims,omitempty"`
	Heirs    []claimRow `json:"heirs,omitempty"`
	Unclear  string     `json:"unclear,omitempty"`
}

type claimRow struct {
	ID         uint64     `json:"id"`
	Owner      string     `json:"owner"`
	Group      string     `json:"group,omitempty"`
	Band       string     `json:"band"`
	Resources  resources  `json:"resources"`
	Class      string     `json:"appclass,omitempty"`
	Disk       int64      `json:"placed_disk_bytes,omitempty"`
	Parts      []partRow  `json:"parts,omitempty"`
	Shares     []shareRow `json:"shares,omitempty"`
	Reclaimed  bool       `json:"reclaimed,omitempty"`
	Since      int64      `json:"since,omitempty"` // unix seconds, as all times in a claim
	Ends       int64      `json:"ends,omitempty"`
	Expected   int64      `json:"expected,omitempty"`
	Saved      int64      `json:"saved,omitempty"`
	Rank       float64    `json:"rank,omitempty"`
	Once       bool       `json:"once,omitempty"`
	Checkpoint bool       `json:"checkpoint,omitempty"`
	Leaving    bool       `json:"leaving,omitempty"`
	Taken      bool       `json:"taken,omitempty"`
	Job        string     `json:"job,omitempty"`
	Limits     string     `json:"limits,omitempty"`
	Queue      string     `json:"queue,omitempty"`
}

type partRow struct {
	Unit       int            `json:"unit"`
	CPU        roost.MilliCPU `json:"milli_cpus,omitempty"`
	Memory     roost.Bytes    `json:"memory_bytes,omitempty"`
	LentCPU    roost.MilliCPU `json:"lent_milli_cpus,omitempty"`
	LentMemory roost.Bytes    `json:"lent_memory_bytes,omitempty"`
}

type shareRow struct {
	Device int         `json:"device"`
	Memory roost.Bytes `json:"memory_bytes,omitempty"`
	Whole  bool        `json:"whole,omitempty"`
}

func rowOf(m *match.Machine) machineRow {
	row := machineRow{Name: m.Name, Started: m.Started, Sequence: m.Sequence, Ad: m.Ad.String(), Claims: claimRows(m.Claims), Heirs: claimRows(m.Heirs)}
	if m.Unclear != nil {
		row.Unclear = m.Unclear.Error()
	}
	return row
}

func claimRows(claims []match.Claim) (rows []claimRow) {
	for i := range claims {
		c := &claims[i]
		row := claimRow{
			ID: c.ID, Owner: c.Submitter.Owner, Group: c.Submitter.Group, Band: c.Band.String(), Resources: resources(c.Resources), Disk: int64(c.Placement.Disk),
			Reclaimed: c.Placement.Reclaimed, Since: c.Since, Ends: c.Ends, Expected: c.Expected, Saved: c.Saved, Rank: c.Rank, Once: c.Once, Checkpoint: c.Checkpoint,
			Leaving: c.Leaving, Taken: c.Taken, Job: c.Job, Limits: c.Limits, Queue: c.Queue,
		}
		if c.App() != gpu.Batch {
			row.Class = c.App().String()
		}
		for _, p := range c.Placement.Parts {
			row.Parts = append(row.Parts, partRow(p))
		}
		for _, s := range c.Placement.Shares {
			row.Shares = append(row.Shares, shareRow(s))
		}
		rows = append(rows, row)
	}
	return rows
}

func (row *machineRow) machine() (*match.Machine, error) {
	ad, err := classad.Parse(row.Ad)
	if err != nil || row.Name == "" {
		return nil, errors.Join(fmt.Errorf("machine %q: %w: its ad makes no sense", row.Name, roost.Invalid), err)
	}
	m := match.NewMachine(row.Name, row.Started, row.Sequence, ad)
	claims, err := claimsOf(row.Claims)
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", row.Name, err)
	}
	heirs, err := claimsOf(row.Heirs)
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", row.Name, err)
	}
	var unclear error
	if row.Unclear != "" {
		unclear = errors.New(row.Unclear)
	}
	return m.Claimed(claims, heirs, unclear), nil
}

func claimsOf(rows []claimRow) (claims []match.Claim, err error) {
	for i := range rows {
		row := &rows[i]
		c := match.Claim{
			ID: row.ID, Submitter: share.Submitter{Group: row.Group, Owner: row.Owner}, Resources: roost.Resources(row.Resources),
			Placement: gpu.Placement{Disk: roost.Bytes(row.Disk), Reclaimed: row.Reclaimed}, Since: row.Since, Ends: row.Ends, Expected: row.Expected, Saved: row.Saved,
			Rank: row.Rank, Once: row.Once, Checkpoint: row.Checkpoint, Leaving: row.Leaving, Taken: row.Taken, Job: row.Job, Limits: row.Limits, Queue: row.Queue,
		}
		if c.Band, err = roost.ParseBand(row.Band); err != nil {
			return nil, fmt.Errorf("claim %d: %w", row.ID, err)
		}
		if c.Placement.Class, err = gpu.ParseClass(row.Class); err != nil {
			return nil, fmt.Errorf("claim %d: %w", row.ID, err)
		}
		if r := c.Resources; row.ID == 0 || row.Owner == "" || r.Negative() {
			return nil, fmt.Errorf("claim %d of %q: %w: it holds %v", row.ID, row.Owner, roost.Invalid, r)
		}
		for _, p := range row.Parts {
			c.Placement.Parts = append(c.Placement.Parts, gpu.Part(p))
		}
		for _, s := range row.Shares {
			c.Placement.Shares = append(c.Placement.Shares, gpu.Share(s))
		}
		claims = append(claims, c)
	}
	return claims, nil
}

type askRow struct {
	Schedd      string            `json:"schedd"`
	ID          uint64            `json:"id"`
	Owner       string            `json:"owner"`
	Group       string            `json:"group,omitempty"`
	UnixGroup   string            `json:"unix_group,omitempty"`
	Band        string            `json:"band"`
	Priority    int32             `json:"priority,omitempty"`
	Oldest      int64             `json:"oldest,omitempty"` // unix nanoseconds
	Wanted      int               `json:"wanted,omitempty"`
	NoWait      int               `json:"no_wait,omitempty"`
	Resources   resources         `json:"resources"`
	Ad          string            `json:"ad"`
	Queue       string            `json:"queue,omitempty"`
	Gang        int               `json:"gang,omitempty"`
	Lead        uint64            `json:"lead,omitempty"`
	Walltime    int64             `json:"walltime_seconds,omitempty"`
	Predicted   int64             `json:"predicted_seconds,omitempty"`
	Reservation string            `json:"reservation,omitempty"`
	Now         bool              `json:"now,omitempty"`
	Counting    Counting          `json:"counting,omitempty"`
	Claims      int               `json:"claims,omitempty"`
	Counts      int               `json:"counts,omitempty"`
	Avoid       map[string]string `json:"avoid,omitempty"`
	Proposed    []match.Proposal  `json:"proposed,omitempty"`
	Since       int64             `json:"waits_since,omitempty"` // unix seconds
}

func rowOfAsk(a *Ask) askRow {
	return askRow{
		Schedd: a.Key.Schedd, ID: a.Key.ID, Owner: a.Submitter.Owner, Group: a.Submitter.Group, UnixGroup: a.UnixGroup, Band: a.Band.String(), Priority: a.Priority,
		Oldest: a.Oldest, Wanted: a.Own, NoWait: a.NoWait, Resources: resources(a.Class.Resources), Ad: a.Text, Queue: a.Queue, Gang: a.Gang, Lead: a.Lead,
		Walltime: int64(a.Walltime / time.Second), Predicted: int64(a.Predicted / time.Second), Reservation: a.Reservation, Now: a.Now, Counting: a.Counting, Claims: a.Claims,
		Counts: a.Counts, Avoid: a.Avoid, Proposed: a.Proposed, Since: a.Since,
	}
}

// maxLength bounds how long a task is taken to run, in seconds.
const maxLength = 100 * 366 * 86400

func (row *askRow) ask() (*Ask, error) {
	length := func(seconds int64) time.Duration { return time.Duration(min(max(seconds, 0), maxLength)) * time.Second }
	a := &Ask{Text: row.Ad, Queue: row.Queue, UnixGroup: row.UnixGroup, Counting: row.Counting, Claims: row.Claims, Counts: row.Counts, Lead: row.Lead}
	a.Key, a.Submitter = match.Key{Schedd: row.Schedd, ID: row.ID}, share.Submitter{Group: row.Group, Owner: row.Owner}
	a.Priority, a.Oldest, a.Own, a.NoWait, a.Gang = row.Priority, row.Oldest, row.Wanted, row.NoWait, row.Gang
	a.Walltime, a.Predicted, a.Reservation, a.Avoid = length(row.Walltime), length(row.Predicted), row.Reservation, row.Avoid
	a.Now = row.Now
	a.Proposed, a.Since = row.Proposed, row.Since
	subject := fmt.Sprintf("request %d of schedd %s", row.ID, row.Schedd)
	if a.Own < 0 || a.Own > roost.MaxTasks || a.Gang < 0 || a.Gang > roost.MaxTasks || a.NoWait < 0 || a.Counting > Elsewhere || row.Owner == "" {
		return nil, fmt.Errorf("%s: %w: its numbers make no sense", subject, roost.Invalid)
	}
	var err error
	if a.Band, err = roost.ParseBand(row.Band); err == nil {
		a.Class, err = match.NewClass(row.Ad, a.Submitter, a.Band, roost.Resources(row.Resources))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", subject, err)
	}
	return a, nil
}

type promiseRow struct {
	Machine   string    `json:"machine"`
	Schedd    string    `json:"schedd"`
	Request   uint64    `json:"request"`
	Resources resources `json:"resources"`
	Class     gpu.Class `json:"stream,omitempty"` // 1
	NonProd   bool      `json:"non_prod,omitempty"`
	Waiting   bool      `json:"waiting,omitempty"`
	Unit      int       `json:"unit,omitempty"`
	Victims   []uint64  `json:"victims,omitempty"`
	Ends      int64     `json:"ends,omitempty"` // unix seconds
}

func rowOfPromise(machine string, p match.Promise) promiseRow {
	return promiseRow{machine, p.Request.Schedd, p.Request.ID, resources(p.Resources), p.Class, p.NonProd, p.Waiting, p.Unit, p.Victims, p.Ends}
}

func (r *promiseRow) promise() match.Promise {
	return match.Promise{
		Request: match.Key{Schedd: r.Schedd, ID: r.Request}, Resources: roost.Resources(r.Resources), Class: r.Class, NonProd: r.NonProd, Waiting: r.Waiting, Unit: r.Unit,
		Victims: r.Victims, Ends: r.Ends,
	}
}

type drainRow struct {
	Node   string    `json:"node"`
	Reason string    `json:"reason,omitempty"`
	From   time.Time `json:"from,omitzero"`
	Until  time.Time `json:"until,omitzero"`
}

type runningRow struct {
	Queue     string    `json:"queue,omitempty"`
	User      string    `json:"user"`
	Group     string    `json:"group,omitempty"`
	UnixGroup string    `json:"unix_group,omitempty"`
	Units     int       `json:"claims"`
	Jobs      int       `json:"jobs"`
	Each      resources `json:"each"`
}

func rowOfRunning(w Running) runningRow {
	return runningRow{w.Queue, w.Party.User, w.Party.Group, w.Party.UnixGroup, w.Units, w.Jobs, resources(w.Each)}
}

func (r *runningRow) running() Running {
	return Running{r.Queue, ledger.Party{User: r.User, Group: r.Group, UnixGroup: r.UnixGroup}, r.Units, r.Jobs, roost.Resources(r.Each)}
}

type userRow struct {
	Owner   string    `json:"owner"`
	Group   string    `json:"group,omitempty"`
	Used    resources `json:"used"`
	Granted resources `json:"granted"`
	Charged bool      `json:"charged,omitempty"`
}

type evictionRow struct {
	At  int64  `json:"at"` // unix nanoseconds
	Job string `json:"job,omitempty"`
}

type startRow struct {
	At        int64     `json:"at"` // unix seconds
	Machine   string    `json:"machine"`
	Resources resources `json:"resources"`
	Units     int       `json:"units"`
}

// Job is a job that is not over, and says which request its tasks are in. The schedds tell it, a moment after the leader has told the rest.
type Job struct {
	ID        string `json:"id"` // "12.host"
	Name      string `json:"name,omitempty"`
	Owner     string `json:"owner"`
	Request   uint64 `json:"request"` // of its first task
	Priority  int32  `json:"priority,omitempty"`
	Submitted int64  `json:"submitted"` // unix nanoseconds
	Waiting   int    `json:"waiting,omitempty"`
	Running   int    `json:"running,omitempty"`

	// What quotas count.
	Group  string    `json:"group,omitempty"`
	Band   string    `json:"band,omitempty"`
	Each   resources `json:"each,omitzero"`         // what a task asks for, the first one if they differ
	Open   int       `json:"open,omitempty"`        // tasks that are not over
	AtOnce int       `json:"max_running,omitempty"` // at most so many of them run at once; 0: all

	Why     string `json:"why,omitempty"`     // it does not start, of a job of which nothing waits for a machine or runs
	Refused bool   `json:"refused,omitempty"` // it is held because quotas, or its queue, did not allow it
}

// Asks says what each task of the job asks for.
func (j *Job) Asks(r roost.Resources) { j.Each = resources(r) }

// Holds is what the tasks of the job may hold at once when all goes well, which is what quotas count, and how many tasks that are.
func (j *Job) Holds() (sum roost.Resources, tasks int) {
	if tasks = j.Open; j.AtOnce > 0 {
		tasks = min(tasks, j.AtOnce)
	}
	n := roost.Bytes(tasks)
	return roost.Resources{CPU: j.Each.CPU * roost.MilliCPU(tasks), Memory: j.Each.Memory * n, Disk: j.Each.Disk * n, GPUs: j.Each.GPUs * tasks}, tasks
}
