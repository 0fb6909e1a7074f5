package schedd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// What a queue gives to a job it takes along when the job goes to another one: the job's ad lists it (roost.AttrQueueFilled), so that the next queue finds the
// job as its user wrote it.

// undo takes from an ad what its queue gave.
func undo(ad *classad.Ad) {
	gave, _ := ad.Strings(roost.AttrQueueFilled)
	for _, name := range append(gave, roost.AttrQueueFilled, roost.AttrQueue) {
		if licence, ok := strings.CutPrefix(name, taken); ok {
			untake(ad, licence)
		} else {
			ad.Delete(name)
		}
	}
}

// name has an ad say in which queue its job is; empty for none. A job of qsub is told in its environment, too.
func name(ad *classad.Ad, to string) {
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

// filling gives an ad what it does not say, and notes that.
type filling struct {
	spec  *queue.Spec
	gave  []string
	words map[string]string // that machines are to have
}

// give sets an attribute to a whole number, rounded up to the unit, if the job says nothing, or the standard.
func (f *filling) give(name string, value *int64, unit, standard int64) {
	has, ok := f.spec.Ad.Int(name)
	if value == nil || ok && has != standard || f.byTask(name) {
		return
	}
	f.note(name)
	f.spec.Ad.SetInt(name, (*value+unit-1)/unit)
}

// byTask reports whether each task says it for itself.
func (f *filling) byTask(name string) bool {
	return slices.ContainsFunc(f.spec.Columns, func(c queue.Column) bool { return c.Name == name })
}

func (f *filling) note(name string) {
	if !slices.Contains(f.gave, name) {
		f.gave = append(f.gave, name)
	}
}

// extent gives what an extent has.
func (f *filling) extent(d *wire.Extent) {
	if d == nil {
		return
	}
	f.give(roost.AttrRequestMemory, d.Memory, int64(roost.MiB), int64(roost.DefaultMemory/roost.MiB))
	f.give(roost.AttrRequestDisk, d.Disk, int64(roost.KiB), 0)
	f.give(roost.AttrRequestGpus, d.Gpus, 1, 0)
	f.give(roost.AttrWalltime, d.WalltimeS, 1, 0)
	f.others(d, false)
	f.ask(d.GetWords())
	if d.MilliCpus != nil && !f.byTask(roost.AttrRequestCpus) {
		if has, ok := f.spec.Ad.Real(roost.AttrRequestCpus); !ok || has == roost.DefaultCPU.Cores() {
			f.note(roost.AttrRequestCpus)
			f.spec.Ad.SetReal(roost.AttrRequestCpus, roost.MilliCPU(*d.MilliCpus).Cores())
		}
	}
}

// fillIn gives a job what it does not say: as its queue has it, and then as the pool has it (all, or nil). Without a default walltime it is the longest
// that is allowed, as in PBS, and so it is of bounds on what processes use.
func fillIn(q, all *wire.JobQueue, spec *queue.Spec) error {
	f := filling{spec: spec}
	f.gave, _ = spec.Ad.Strings(roost.AttrQueueFilled)
	if band := q.GetBand(); band != "" {
		has, ok := spec.Ad.Str(roost.AttrBand)
		if ok && has != band && has != roost.Batch.String() {
			return fmt.Errorf("%w: the job asks for band %s, and the jobs of this queue are of band %s", roost.Conflict, has, band)
		}
		if has != band {
			f.note(roost.AttrBand)
		}
		spec.Ad.SetString(roost.AttrBand, band)
	}
	for _, d := range []*wire.Extent{q.GetDefault(), q.GetChunk(), all.GetDefault(), all.GetChunk()} {
		f.extent(d)
	}
	for _, most := range []*wire.Extent{q.GetMost(), all.GetMost()} {
		if most != nil {
			f.give(roost.AttrWalltime, most.WalltimeS, 1, 0)
			f.others(most, true)
		}
	}
	if n := int64(q.GetPriority()); n != 0 {
		f.give(roost.AttrPriority, &n, 1, 0)
	}
	if q.NoticeS != nil {
		if _, says := spec.Ad.Int(roost.AttrNotice); !says {
			f.give(roost.AttrNotice, q.NoticeS, 1, 0)
		}
	}
	f.require()
	setFilled(spec.Ad, f.gave)
	return nil
}
