package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// What a queue gives to a job it takes along when the job goes to another one: the job's
// ad lists it (roost.AttrQueueFilled), so that the next queue finds the job as its user
// wrote it.

// removeQueueDefaults takes from an ad what its queue gave.
func removeQueueDefaults(ad *classad.Ad) {
	gave, _ := ad.Strings(roost.AttrQueueDefaults)
	for _, name := range append(gave, roost.AttrQueueDefaults, roost.AttrQueue) {
		if limitName, ok := strings.CutPrefix(name, limitPrefix); ok {
			removeConcurrencyLimit(ad, limitName)
		} else {
			ad.Delete(name)
		}
	}
}

// setQueueName has an ad say in which queue its job is; empty for none. A job of qsub is
// told in its environment, too.
func setQueueName(ad *classad.Ad, to string) {
	if ad.Delete(roost.AttrQueue); to != "" {
		ad.SetString(roost.AttrQueue, to)
	}
	env, ok := ad.Strings(roost.AttrEnvironment)
	at := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "PBS_QUEUE=") })
	if !ok || at < 0 {
		return
	}
	env[at] = "PBS_QUEUE=" + strings.ReplaceAll(to, "$", "$$")
	ad.SetStrings(roost.AttrEnvironment, env)
}

// queueDefaults gives an ad what it does not say, and notes that.
type queueDefaults struct {
	spec         *queue.SubmitSpec
	defaulted    []string
	requirements map[string]string // that machines are to have
}

// setDefault sets an attribute that the job leaves out to a value in whole units, rounded
// up. A job with the standard value counts as one that leaves it out.
func (f *queueDefaults) setDefault(name string, value *int64, unit, standard int64) {
	has, ok := f.spec.Ad.Int(name)
	if value == nil || ok && has != standard || f.isSetPerTask(name) {
		return
	}
	f.noteDefault(name)
	f.spec.Ad.SetInt(name, (*value+unit-1)/unit)
}

// isSetPerTask reports whether each task says it for itself.
func (f *queueDefaults) isSetPerTask(name string) bool {
	return slices.ContainsFunc(f.spec.Columns, func(c queue.TaskColumn) bool { return c.Name == name })
}

func (f *queueDefaults) noteDefault(name string) {
	if !slices.Contains(f.defaulted, name) {
		f.defaulted = append(f.defaulted, name)
	}
}

// fillExtent gives what an extent has.
func (f *queueDefaults) fillExtent(d *wire.Extent) {
	if d == nil {
		return
	}
	f.setDefault(roost.AttrRequestMemory, d.Memory, int64(roost.MiB), int64(roost.DefaultMemory/roost.MiB))
	f.setDefault(roost.AttrRequestDisk, d.Disk, int64(roost.KiB), 0)
	f.setDefault(roost.AttrRequestGpus, d.Gpus, 1, 0)
	f.setDefault(roost.AttrWalltime, d.WalltimeS, 1, 0)
	f.fillOtherResources(d, false)
	f.addRequirement(d.GetWords())
	if d.MilliCpus != nil && !f.isSetPerTask(roost.AttrRequestCpus) {
		if has, ok := f.spec.Ad.Real(roost.AttrRequestCpus); !ok || has == roost.DefaultCPU.Cores() {
			f.noteDefault(roost.AttrRequestCpus)
			f.spec.Ad.SetReal(roost.AttrRequestCpus, roost.MilliCPU(*d.MilliCpus).Cores())
		}
	}
}

// applyDefaults sets what a job leaves out: first the queue's defaults, then the pool's.
// all has the pool's and may be nil. Without a default walltime the job gets the longest
// that is allowed, as in PBS. The same holds for the bounds on what processes use.
func applyDefaults(q, all *wire.JobQueue, spec *queue.SubmitSpec) error {
	f := queueDefaults{spec: spec}
	f.defaulted, _ = spec.Ad.Strings(roost.AttrQueueDefaults)
	if band := q.GetBand(); band != "" {
		has, ok := spec.Ad.Str(roost.AttrBand)
		if ok && has != band && has != roost.BatchBand.String() {
			return fmt.Errorf("%w: the job asks for band %s, and the jobs of this queue are of band %s", roost.Conflict,
				has, band)
		}
		if has != band {
			f.noteDefault(roost.AttrBand)
		}
		spec.Ad.SetString(roost.AttrBand, band)
	}
	for _, d := range []*wire.Extent{q.GetDefault(), q.GetChunk(), all.GetDefault(), all.GetChunk()} {
		f.fillExtent(d)
	}
	for _, most := range []*wire.Extent{q.GetMost(), all.GetMost()} {
		if most != nil {
			f.setDefault(roost.AttrWalltime, most.WalltimeS, 1, 0)
			f.fillOtherResources(most, true)
		}
	}
	if n := int64(q.GetPriority()); n != 0 {
		f.setDefault(roost.AttrPriority, &n, 1, 0)
	}
	if q.NoticeS != nil {
		if _, known := spec.Ad.Int(roost.AttrNoticePeriod); !known {
			f.setDefault(roost.AttrNoticePeriod, q.NoticeS, 1, 0)
		}
	}
	f.setRequirements()
	setQueueAttributes(spec.Ad, f.defaulted)
	return nil
}
