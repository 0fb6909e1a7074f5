package queue

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// plan is what the queue needs to know of a job's ad, read once.
type plan struct {
	name, group, queue string
	band               roost.Band
	priority           int
	base               override // what holds where no column says otherwise
	lease              time.Duration
	notice             time.Duration
	retries            int
	maxRunning         int
	startAfter         int64 // unix seconds, 0 for at once
	rerunnable         bool
	hold               bool
	array              bool
	transfer, domain   string
}

// override is what columns may set for each task.
type override struct {
	resources          roost.Resources
	requirements, rank string
	walltime           time.Duration
}

// attrArray marks jobs that were submitted as several tasks, though it may be only one.
const attrArray = "Array"

// Bounds of what a task may ask for, beyond any machine there is.
const (
	maxCores   = 1_000_000
	maxMemory  = 1 << 32 // MiB
	maxDisk    = 1 << 42 // KiB
	maxGPUs    = 1 << 16
	maxSeconds = 100 * 365 * 86400
	maxRetries = 1000
)

// readPlan reads and checks an ad. Errors name the attribute.
func readPlan(ad *classad.Ad, count int) (plan, error) {
	r := reader{ad: ad}
	var p plan
	var err error
	if p.band, err = roost.ParseBand(r.text(roost.AttrBand, roost.Batch.String())); err != nil {
		r.fail(roost.AttrBand, err.Error())
	}
	p.name, p.group, p.queue = r.text(roost.AttrJobName, ""), r.text(roost.AttrGroup, ""), r.text(roost.AttrQueue, "")
	p.priority = int(r.whole(roost.AttrPriority, 0, roost.MinPriority, roost.MaxPriority))
	p.base = override{
		resources: roost.Resources{
			CPU:    r.cpus(),
			Memory: roost.Bytes(r.whole(roost.AttrRequestMemory, int64(roost.DefaultMemory/roost.MiB), 1, maxMemory)) * roost.MiB,
			Disk:   roost.Bytes(r.whole(roost.AttrRequestDisk, 0, 0, maxDisk)) * roost.KiB,
			GPUs:   int(r.whole(roost.AttrRequestGpus, 0, 0, maxGPUs)),
		},
		requirements: r.expr(roost.AttrRequirements), rank: r.expr(roost.AttrRank),
		walltime: r.seconds(roost.AttrWalltime, 0),
	}
	p.lease, p.notice = r.seconds(roost.AttrJobLease, 0), r.seconds(roost.AttrNotice, -time.Second)
	p.retries = int(r.whole(roost.AttrMaxRetries, 0, 0, maxRetries))
	p.maxRunning = int(r.whole(roost.AttrMaxRunning, 0, 0, roost.MaxTasks))
	p.startAfter = r.whole(roost.AttrStartAfter, 0, 0, 1<<40)
	p.rerunnable, p.hold, p.array = r.truth(roost.AttrRerunnable, true), r.truth(roost.AttrHoldOnSubmit, false), r.truth(attrArray, count > 1)
	p.transfer, p.domain = r.text(roost.AttrTransfer, "auto"), r.text(roost.AttrFileSystemDomain, "")
	if p.transfer != "auto" && p.transfer != "always" && p.transfer != "never" {
		r.fail(roost.AttrTransfer, fmt.Sprintf("%q is not auto, always or never", p.transfer))
	}
	return p, r.err
}

// reader reads attributes; the first mistake sticks.
type reader struct {
	ad  *classad.Ad
	err error
}

func (r *reader) fail(attr, cause string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w: %s", attr, roost.Invalid, cause)
	}
}

func (r *reader) text(attr, otherwise string) string {
	if _, ok := r.ad.Lookup(attr); !ok {
		return otherwise
	}
	s, ok := r.ad.Str(attr)
	if !ok {
		r.fail(attr, "it is not a string")
	}
	return s
}

func (r *reader) whole(attr string, otherwise, least, most int64) int64 {
	if _, ok := r.ad.Lookup(attr); !ok {
		return otherwise
	}
	f, ok := r.ad.Real(attr)
	if !ok || f != math.Trunc(f) || f < float64(least) || f > float64(most) {
		r.fail(attr, fmt.Sprintf("it has to be a whole number from %d to %d", least, most))
		return otherwise
	}
	return int64(f)
}

func (r *reader) seconds(attr string, otherwise time.Duration) time.Duration {
	return time.Duration(r.whole(attr, int64(otherwise/time.Second), 0, maxSeconds)) * time.Second
}

func (r *reader) cpus() roost.MilliCPU {
	if _, ok := r.ad.Lookup(roost.AttrRequestCpus); !ok {
		return roost.DefaultCPU
	}
	f, ok := r.ad.Real(roost.AttrRequestCpus)
	c, err := cores(f)
	if !ok || err != nil {
		r.fail(roost.AttrRequestCpus, "it has to be a number of cores above 0, at most 1000000")
	}
	return c
}

func cores(f float64) (roost.MilliCPU, error) {
	if !(f > 0 && f <= maxCores) {
		return 0, fmt.Errorf("%w: %v is no number of cores", roost.Invalid, f)
	}
	return roost.MilliCPU(math.Ceil(f*1000 - 1e-6)), nil
}

func (r *reader) truth(attr string, otherwise bool) bool {
	if _, ok := r.ad.Lookup(attr); !ok {
		return otherwise
	}
	b, ok := r.ad.Bool(attr)
	if !ok {
		r.fail(attr, "it is neither true nor false")
	}
	return b
}

func (r *reader) expr(attr string) string {
	e, ok := r.ad.Lookup(attr)
	if !ok {
		return ""
	}
	return e.String()
}

// overriding returns what sets a task's value from a column of that name, nil for an ordinary column.
func overriding(name string) func(o *override, value string) error {
	switch {
	case strings.EqualFold(name, roost.AttrRequestCpus):
		return func(o *override, v string) (err error) {
			f, err := strconv.ParseFloat(v, 64)
			if err == nil {
				o.resources.CPU, err = cores(f)
			}
			return err
		}
	case strings.EqualFold(name, roost.AttrRequestMemory):
		return func(o *override, v string) error { return bounded(v, 1, maxMemory<<20, (*int64)(&o.resources.Memory)) }
	case strings.EqualFold(name, roost.AttrRequestDisk):
		return func(o *override, v string) error { return bounded(v, 0, maxDisk<<10, (*int64)(&o.resources.Disk)) }
	case strings.EqualFold(name, roost.AttrRequestGpus):
		return func(o *override, v string) error {
			var n int64
			err := bounded(v, 0, maxGPUs, &n)
			o.resources.GPUs = int(n)
			return err
		}
	case strings.EqualFold(name, roost.AttrWalltime):
		return func(o *override, v string) error {
			var n int64
			err := bounded(v, 0, maxSeconds, &n)
			o.walltime = time.Duration(n) * time.Second
			return err
		}
	case strings.EqualFold(name, roost.AttrRequirements):
		return func(o *override, v string) error { return expression(v, &o.requirements) }
	case strings.EqualFold(name, roost.AttrRank):
		return func(o *override, v string) error { return expression(v, &o.rank) }
	}
	return nil
}

func bounded(v string, least, most int64, to *int64) error {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < least || n > most {
		return fmt.Errorf("%w: %q is no whole number from %d to %d", roost.Invalid, v, least, most)
	}
	*to = n
	return nil
}

func expression(v string, to *string) error {
	e, err := classad.ParseExpr(v)
	if err == nil {
		*to = e.String()
	}
	return err
}

// maxClasses bounds how many different requests one job makes.
const maxClasses = 1 << 16

// classes groups the tasks of a job by what their columns override: the different overrides, and for each task its place among them (nil
// when there is one).
func classes(p *plan, count int, columns []packed) (kinds []override, of []uint16, err error) {
	type setter struct {
		column *packed
		set    func(*override, string) error
	}
	var setters []setter
	for i := range columns {
		if set := overriding(columns[i].name); set != nil {
			setters = append(setters, setter{&columns[i], set})
		}
	}
	if len(setters) == 0 {
		return []override{p.base}, nil, nil
	}
	seen := map[override]int{}
	of = make([]uint16, count)
	for i := range count {
		o := p.base
		for _, s := range setters {
			if err := s.set(&o, s.column.value(i)); err != nil {
				return nil, nil, fmt.Errorf("column %s of task %d: %w", s.column.name, i, err)
			}
		}
		at, ok := seen[o]
		if !ok {
			if at = len(kinds); at == maxClasses {
				return nil, nil, fmt.Errorf("%w: the tasks ask for more than %d different things", roost.Exhausted, maxClasses)
			}
			seen[o] = at
			kinds = append(kinds, o)
		}
		of[i] = uint16(at)
	}
	if len(kinds) == 1 {
		of = nil
	}
	return kinds, of, nil
}
