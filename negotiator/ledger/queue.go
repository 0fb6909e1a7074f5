package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// Queue is where jobs are submitted to by name (PBS: qmgr's queues of type execution). A job without one goes to the queue that the setting
// default_queue names, or to none.
type Queue struct {
	Name     string   `json:"name"`
	Band     string   `json:"band,omitempty"` // of its jobs; empty: batch
	Enabled  bool     `json:"enabled"`        // it takes jobs
	Started  bool     `json:"started"`        // its jobs may start
	Priority int32    `json:"priority,omitempty"`
	Default  Extent   `json:"default"` // what a job gets that does not say
	Least    Extent   `json:"least"`   // what a job has to ask for; resources_min
	Most     Extent   `json:"most"`    // and may; resources_max
	Running  Counts   `json:"running"` // tasks that run at once; max_run
	Queued   Counts   `json:"queued"`  // tasks that are not done; max_queued
	Users    []string `json:"users,omitempty"`
	Groups   []string `json:"groups,omitempty"` // with Users: who may use it; everybody, if neither is given
}

// Extent is an amount of resources for a length of time, each nil for not set.
type Extent struct {
	CPUs     *Cores       `json:"cpus,omitempty"`
	Memory   *roost.Bytes `json:"memory_bytes,omitempty"`
	Disk     *roost.Bytes `json:"disk_bytes,omitempty"`
	GPUs     *int64       `json:"gpus,omitempty"`
	Walltime *int64       `json:"walltime_seconds,omitempty"`
}

// Counts bounds how many there are, each nil for no bound.
type Counts struct {
	Total    *int64 `json:"total,omitempty"`
	PerUser  *int64 `json:"per_user,omitempty"`
	PerGroup *int64 `json:"per_group,omitempty"`
}

func (q Queue) name() string     { return q.Name }
func (q Queue) users() []string  { return q.Users }
func (q Queue) groups() []string { return q.Groups }

// bounds are the dimensions of an extent, with its walltime.
func (e Extent) bounds() []Dimension {
	all := (Amounts{CPUs: e.CPUs, Memory: e.Memory, Disk: e.Disk, GPUs: e.GPUs}).Bounds()
	if e.Walltime != nil {
		text := fmt.Sprintf("%d s", *e.Walltime)
		if *e.Walltime >= 0 && *e.Walltime <= mostWalltime {
			text = (time.Duration(*e.Walltime) * time.Second).String()
		}
		all = append(all, Dimension{"walltime", *e.Walltime, text})
	}
	return all
}

// mostWalltime is in seconds: a hundred years.
const mostWalltime = 100 * 366 * 24 * 3600

func (e Extent) check() error {
	if err := (Amounts{CPUs: e.CPUs, Memory: e.Memory, Disk: e.Disk, GPUs: e.GPUs}).check(); err != nil {
		return err
	}
	if w := e.Walltime; w != nil && (*w < 1 || *w > mostWalltime) {
		return fmt.Errorf("a walltime of %d seconds: it is between 1 and %d", *w, int64(mostWalltime))
	}
	return nil
}

// above names a dimension in which e is more than o, if both say.
func (e Extent) above(o Extent) error {
	for _, d := range e.bounds() {
		for _, m := range o.bounds() {
			if d.Name == m.Name && d.Value > m.Value {
				return fmt.Errorf("%s of %s is more than %s", d.Name, d.Text, m.Text)
			}
		}
	}
	return nil
}

func (q Queue) check(*Ledger) error {
	if err := plain("a queue", q.Name); err != nil {
		return err
	}
	if q.Band != "" {
		if _, err := roost.ParseBand(q.Band); err != nil {
			return err
		}
	}
	if q.Priority < roost.MinPriority || q.Priority > roost.MaxPriority {
		return fmt.Errorf("priority %d is not between %d and %d", q.Priority, roost.MinPriority, roost.MaxPriority)
	}
	for i, e := range []Extent{q.Default, q.Least, q.Most} {
		if err := e.check(); err != nil {
			return fmt.Errorf("%s: %w", [...]string{"default", "least", "most"}[i], err)
		}
	}
	if err := q.Least.above(q.Most); err != nil {
		return fmt.Errorf("least: %w, the most: no job could enter it", err)
	}
	if err := q.Least.above(q.Default); err != nil {
		return fmt.Errorf("least: %w, the default: a job that does not say could not enter it", err)
	}
	if err := q.Default.above(q.Most); err != nil {
		return fmt.Errorf("default: %w, the most: a job that does not say could not enter it", err)
	}
	if err := q.Running.check(); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	if err := q.Queued.check(); err != nil {
		return fmt.Errorf("queued: %w", err)
	}
	return accounts("a user", q.Users)
}

func (c Counts) check() error {
	for i, n := range []*int64{c.Total, c.PerUser, c.PerGroup} {
		what := [...]string{"total", "per user", "per group"}[i]
		if n != nil && (*n < 0 || *n > mostCount) {
			return fmt.Errorf("%s is %d: it is between 0 and %d; leave it out for no bound", what, *n, mostCount)
		}
		if n != nil && c.Total != nil && *n > *c.Total {
			return fmt.Errorf("%s is %d and total %d: it could never be reached", what, *n, *c.Total)
		}
	}
	return nil
}

// Queues lists the queues by name.
func (l *Ledger) Queues() []Queue { return slices.Collect(things[Queue](l, KindQueue)) }

// Queue returns one queue.
func (l *Ledger) Queue(name string) (Queue, bool) { return one[Queue](l, KindQueue, name) }

// Admits reports whether a user, on behalf of that group or none, may use the queue.
func (q Queue) Admits(user, group string) bool {
	if len(q.Users) == 0 && len(q.Groups) == 0 {
		return true
	}
	for _, g := range q.Groups {
		if g == group || within(group, g) {
			return true
		}
	}
	return slices.Contains(q.Users, user)
}
