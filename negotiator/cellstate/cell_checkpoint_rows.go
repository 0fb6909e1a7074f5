package cellstate

import (
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// The rows of a checkpoint. roost-cell-checkpoint(5) describes them: a field with a new
// meaning gets a new name.

// resourceRow is roost.Resources with names for the file.
type resourceRow struct {
	CPU       roost.MilliCPU `json:"milli_cpus,omitempty"`
	Memory    roost.Bytes    `json:"memory_bytes,omitempty"`
	Disk      roost.Bytes    `json:"disk_bytes,omitempty"`
	GPUs      int            `json:"gpus,omitempty"`
	GPUMemory roost.Bytes    `json:"gpu_memory_bytes,omitempty"`
	IO        roost.IORates  `json:"io,omitzero"`
}

type machineRow struct {
	Name          string     `json:"name"`
	Started       int64      `json:"started,omitempty"`
	Sequence      uint64     `json:"sequence,omitempty"`
	Ad            string     `json:"ad"` // without Claims
	Claims        []claimRow `json:"claims,omitempty"`
	Preemptors    []claimRow `json:"heirs,omitempty"`
	ClaimsUnknown string     `json:"unclear,omitempty"`
}

type claimRow struct {
	ID             uint64      `json:"id"`
	Owner          string      `json:"owner"`
	Group          string      `json:"group,omitempty"`
	Band           string      `json:"band"`
	Resources      resourceRow `json:"resources"`
	Class          string      `json:"appclass,omitempty"`
	Disk           int64       `json:"placed_disk_bytes,omitempty"`
	Parts          []partRow   `json:"parts,omitempty"`
	Shares         []shareRow  `json:"shares,omitempty"`
	Reclaimed      bool        `json:"reclaimed,omitempty"`
	TaskStarted    int64       `json:"since,omitempty"` // unix seconds, as all times in a claim
	WalltimeEnd    int64       `json:"ends,omitempty"`
	PredictedEnd   int64       `json:"expected,omitempty"`
	LastCheckpoint int64       `json:"saved,omitempty"`
	Rank           float64     `json:"rank,omitempty"`
	NotRerunnable  bool        `json:"once,omitempty"`
	Checkpointable bool        `json:"checkpoint,omitempty"`
	Vacating       bool        `json:"leaving,omitempty"`
	PromisedToNext bool        `json:"taken,omitempty"`
	Job            string      `json:"job,omitempty"`
	Limits         string      `json:"limits,omitempty"`
	Queue          string      `json:"queue,omitempty"`
}

type partRow struct {
	Unit              int            `json:"unit"`
	CPU               roost.MilliCPU `json:"milli_cpus,omitempty"`
	Memory            roost.Bytes    `json:"memory_bytes,omitempty"`
	ReclaimableCPU    roost.MilliCPU `json:"lent_milli_cpus,omitempty"`
	ReclaimableMemory roost.Bytes    `json:"lent_memory_bytes,omitempty"`
}

type shareRow struct {
	Device int         `json:"device"`
	Memory roost.Bytes `json:"memory_bytes,omitempty"`
	Whole  bool        `json:"whole,omitempty"`
}

func machineRowOf(m *match.Machine) machineRow {
	row := machineRow{Name: m.Name, Started: m.Started, Sequence: m.Sequence, Ad: m.Ad.String(),
		Claims: claimRowsOf(m.Claims), Preemptors: claimRowsOf(m.Preemptors)}
	if m.ClaimsUnknown != nil {
		row.ClaimsUnknown = m.ClaimsUnknown.Error()
	}
	return row
}

func claimRowsOf(claims []match.MachineClaim) (rows []claimRow) {
	for i := range claims {
		c := &claims[i]
		row := claimRow{
			ID: c.ID, Owner: c.Submitter.Owner, Group: c.Submitter.Group, Band: c.Band.String(),
			Resources: resourceRow(c.Resources), Disk: int64(c.Placement.Disk),
			Reclaimed: c.Placement.Reclaimed, TaskStarted: c.TaskStarted, WalltimeEnd: c.WalltimeEnd,
			PredictedEnd: c.PredictedEnd, LastCheckpoint: c.LastCheckpoint, Rank: c.Rank,
			NotRerunnable: c.NotRerunnable, Checkpointable: c.Checkpointable,
			Vacating: c.Vacating, PromisedToNext: c.PromisedToNext, Job: c.Job, Limits: c.Limits, Queue: c.Queue,
		}
		if c.AppClass() != gpu.BatchClass {
			row.Class = c.AppClass().String()
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
	preemptors, err := claimsOf(row.Preemptors)
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", row.Name, err)
	}
	var unclear error
	if row.ClaimsUnknown != "" {
		unclear = errors.New(row.ClaimsUnknown)
	}
	return m.ReplaceClaims(claims, preemptors, unclear), nil
}

func claimsOf(rows []claimRow) (claims []match.MachineClaim, err error) {
	for i := range rows {
		row := &rows[i]
		c := match.MachineClaim{
			ID: row.ID, Submitter: fairshare.Submitter{Group: row.Group, Owner: row.Owner},
			Resources:   roost.Resources(row.Resources),
			Placement:   gpu.Placement{Disk: roost.Bytes(row.Disk), IO: row.Resources.IO, Reclaimed: row.Reclaimed},
			TaskStarted: row.TaskStarted, WalltimeEnd: row.WalltimeEnd, PredictedEnd: row.PredictedEnd,
			LastCheckpoint: row.LastCheckpoint,
			Rank:           row.Rank, NotRerunnable: row.NotRerunnable, Checkpointable: row.Checkpointable,
			Vacating: row.Vacating, PromisedToNext: row.PromisedToNext, Job: row.Job, Limits: row.Limits,
			Queue: row.Queue,
		}
		if c.Band, err = roost.ParsePriorityBand(row.Band); err != nil {
			return nil, fmt.Errorf("claim %d: %w", row.ID, err)
		}
		if c.Placement.Class, err = gpu.ParseClass(row.Class); err != nil {
			return nil, fmt.Errorf("claim %d: %w", row.ID, err)
		}
		if r := c.Resources; row.ID == 0 || row.Owner == "" || r.IsNegative() {
			return nil, fmt.Errorf("claim %d of %q: %w: it holds %v", row.ID, row.Owner, roost.Invalid, r)
		}
		for _, p := range row.Parts {
			c.Placement.Parts = append(c.Placement.Parts, gpu.UnitPart(p))
		}
		for _, s := range row.Shares {
			c.Placement.Shares = append(c.Placement.Shares, gpu.DeviceShare(s))
		}
		claims = append(claims, c)
	}
	return claims, nil
}

type requestRow struct {
	Schedd           string                `json:"schedd"`
	ID               uint64                `json:"id"`
	Owner            string                `json:"owner"`
	Group            string                `json:"group,omitempty"`
	UnixGroup        string                `json:"unix_group,omitempty"`
	Band             string                `json:"band"`
	Priority         int32                 `json:"priority,omitempty"`
	AtPriority       int                   `json:"at_priority,omitempty"`
	Oldest           int64                 `json:"oldest,omitempty"` // unix nanoseconds
	Wanted           int                   `json:"wanted,omitempty"`
	NoQueue          int                   `json:"no_wait,omitempty"`
	Resources        resourceRow           `json:"resources"`
	Ad               string                `json:"ad"`
	Queue            string                `json:"queue,omitempty"`
	Gang             int                   `json:"gang,omitempty"`
	GangRequest      uint64                `json:"lead,omitempty"`
	Walltime         int64                 `json:"walltime_seconds,omitempty"`
	PredictedRuntime int64                 `json:"predicted_seconds,omitempty"`
	Reservation      string                `json:"reservation,omitempty"`
	Now              bool                  `json:"now,omitempty"`
	Counting         LimitCounting         `json:"counting,omitempty"`
	Claims           int                   `json:"claims,omitempty"`
	RunningCount     int                   `json:"counts,omitempty"`
	Avoid            map[string]string     `json:"avoid,omitempty"`
	SelfPlacements   []match.SelfPlacement `json:"proposed,omitempty"`
	WaitingSince     int64                 `json:"waits_since,omitempty"` // unix seconds
}

func requestRowOf(a *PendingRequest) requestRow {
	return requestRow{
		Schedd: a.Key.Schedd, ID: a.Key.ID, Owner: a.Submitter.Owner, Group: a.Submitter.Group, UnixGroup: a.UnixGroup,
		Band: a.Band.String(), Priority: a.Priority, AtPriority: a.PriorityUnits,
		Oldest: a.Oldest, Wanted: a.OwnWanted, NoQueue: a.NoQueue, Resources: resourceRow(a.Class.Resources),
		Ad: a.AdText, Queue: a.Queue, Gang: a.Gang, GangRequest: a.GangRequest,
		Walltime: int64(a.Walltime / time.Second), PredictedRuntime: int64(a.PredictedRuntime / time.Second),
		Reservation: a.Reservation, Now: a.Now, Counting: a.Counting, Claims: a.Claims,
		RunningCount: a.RunningCount, Avoid: a.Avoid, SelfPlacements: a.SelfPlacements, WaitingSince: a.WaitingSince,
	}
}

// maxRuntime bounds the run time of a task, in seconds.
const maxRuntime = 100 * 366 * 86400

func (row *requestRow) pendingRequest() (*PendingRequest, error) {
	length := func(seconds int64) time.Duration {
		return time.Duration(min(max(seconds, 0), maxRuntime)) * time.Second
	}
	a := &PendingRequest{AdText: row.Ad, Queue: row.Queue, UnixGroup: row.UnixGroup, Counting: row.Counting,
		Claims: row.Claims, RunningCount: row.RunningCount, GangRequest: row.GangRequest}
	a.Key, a.Submitter = match.RequestKey{Schedd: row.Schedd, ID: row.ID},
		fairshare.Submitter{Group: row.Group, Owner: row.Owner}
	a.Priority, a.Oldest, a.OwnWanted, a.NoQueue, a.Gang = row.Priority, row.Oldest, row.Wanted, row.NoQueue, row.Gang
	a.Walltime, a.PredictedRuntime, a.Reservation, a.Avoid = length(row.Walltime), length(row.PredictedRuntime),
		row.Reservation, row.Avoid
	a.Now, a.PriorityUnits = row.Now, row.AtPriority
	a.SelfPlacements, a.WaitingSince = row.SelfPlacements, row.WaitingSince
	subject := fmt.Sprintf("request %d of schedd %s", row.ID, row.Schedd)
	if a.OwnWanted < 0 || a.OwnWanted > roost.MaxTasks || a.Gang < 0 || a.Gang > roost.MaxTasks || a.NoQueue < 0 ||
		a.Counting > CountedElsewhere || row.Owner == "" {
		return nil, fmt.Errorf("%s: %w: its numbers make no sense", subject, roost.Invalid)
	}
	var err error
	if a.Band, err = roost.ParsePriorityBand(row.Band); err == nil {
		a.Class, err = match.NewClass(row.Ad, a.Submitter, a.Band, roost.Resources(row.Resources))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", subject, err)
	}
	return a, nil
}

type pendingGrantRow struct {
	Machine     string       `json:"machine"`
	Schedd      string       `json:"schedd"`
	Request     uint64       `json:"request"`
	Resources   resourceRow  `json:"resources"`
	Class       gpu.AppClass `json:"stream,omitempty"` // 1
	MayReclaim  bool         `json:"non_prod,omitempty"`
	Waiting     bool         `json:"waiting,omitempty"`
	Unit        int          `json:"unit,omitempty"`
	Victims     []uint64     `json:"victims,omitempty"`
	WalltimeEnd int64        `json:"ends,omitempty"` // unix seconds
	Ports       []uint16     `json:"ports,omitempty"`
}

func pendingGrantRowOf(machine string, p match.PendingGrant) pendingGrantRow {
	return pendingGrantRow{machine, p.Request.Schedd, p.Request.ID, resourceRow(p.Resources), p.Class, p.MayReclaim,
		p.Waiting, p.Unit, p.Victims, p.WalltimeEnd, p.Ports}
}

func (r *pendingGrantRow) pendingGrant() match.PendingGrant {
	return match.PendingGrant{
		Request: match.RequestKey{Schedd: r.Schedd, ID: r.Request}, Resources: roost.Resources(r.Resources),
		Class: r.Class, MayReclaim: r.MayReclaim, Waiting: r.Waiting, Unit: r.Unit,
		Victims: r.Victims, WalltimeEnd: r.WalltimeEnd, Ports: r.Ports,
	}
}

type drainRow struct {
	Node   string    `json:"node"`
	Reason string    `json:"reason,omitempty"`
	From   time.Time `json:"from,omitzero"`
	Until  time.Time `json:"until,omitzero"`
}

type runningRow struct {
	Queue     string      `json:"queue,omitempty"`
	User      string      `json:"user"`
	Group     string      `json:"group,omitempty"`
	UnixGroup string      `json:"unix_group,omitempty"`
	Units     int         `json:"claims"`
	Jobs      int         `json:"jobs"`
	Each      resourceRow `json:"each"`
}

func runningRowOf(w RunningTasks) runningRow {
	return runningRow{w.Queue, w.Subject.User, w.Subject.Group, w.Subject.UnixGroup, w.Units, w.Jobs,
		resourceRow(w.Each)}
}

func (r *runningRow) running() RunningTasks {
	return RunningTasks{r.Queue, ledger.LimitSubject{User: r.User, Group: r.Group, UnixGroup: r.UnixGroup}, r.Units,
		r.Jobs, roost.Resources(r.Each)}
}

type submitterRow struct {
	Owner         string      `json:"owner"`
	Group         string      `json:"group,omitempty"`
	UsageByClaims resourceRow `json:"used"`
	UsageByGrants resourceRow `json:"granted"`
	ChargedCores  bool        `json:"charged,omitempty"`
}

type evictionRow struct {
	At  int64  `json:"at"` // unix nanoseconds
	Job string `json:"job,omitempty"`
}

type startRow struct {
	At        int64       `json:"at"` // unix seconds
	Machine   string      `json:"machine"`
	Resources resourceRow `json:"resources"`
	Units     int         `json:"units"`
}

// JobRow is an unfinished job, and the request of its tasks. Schedds report it, a moment
// after the leader has written the rest.
type JobRow struct {
	ID        string `json:"id"` // "12.host"
	Name      string `json:"name,omitempty"`
	Owner     string `json:"owner"`
	Request   uint64 `json:"request"` // of its first task
	Priority  int32  `json:"priority,omitempty"`
	Submitted int64  `json:"submitted"` // unix nanoseconds
	Waiting   int    `json:"waiting,omitempty"`
	Running   int    `json:"running,omitempty"`

	// What quotas count.
	Group         string      `json:"group,omitempty"`
	Band          string      `json:"band,omitempty"`
	TaskResources resourceRow `json:"each,omitzero"`         // requested by a task, the first one if they differ
	OpenTasks     int         `json:"open,omitempty"`        // number of unfinished tasks
	MaxRunning    int         `json:"max_running,omitempty"` // most of them that run at once; 0: unlimited

	// why it does not start, if none of its tasks waits for a machine or runs
	WaitReason string `json:"why,omitempty"`
	Refused    bool   `json:"refused,omitempty"` // it is held because quotas or its queue refused it
}

// RequestedResources sets what each task of the job requests.
func (j *JobRow) RequestedResources(r roost.Resources) { j.TaskResources = resourceRow(r) }

// MaxResources returns the most that the tasks of the job may use at once, and how many
// tasks that is. Quotas count it.
func (j *JobRow) MaxResources() (sum roost.Resources, tasks int) {
	if tasks = j.OpenTasks; j.MaxRunning > 0 {
		tasks = min(tasks, j.MaxRunning)
	}
	n := roost.Bytes(tasks)
	return roost.Resources{CPU: j.TaskResources.CPU * roost.MilliCPU(tasks), Memory: j.TaskResources.Memory * n,
		Disk: j.TaskResources.Disk * n, GPUs: j.TaskResources.GPUs * tasks}, tasks
}
