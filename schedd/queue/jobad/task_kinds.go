package jobad

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// UniformTasks is so many tasks of a job that ask for the same.
type UniformTasks struct {
	roost.Resources
	Walltime          time.Duration // 0: for ever
	Bounds            ProcessLimits
	ConcurrencyLimits string // of each, as [roost.ParseLimitRequests] reads it
	Gang              int    // so many of them start together; below 2: each for itself
	Tasks             int
}

// TaskKinds lists what the tasks of a job that is about to be submitted ask for.
func TaskKinds(spec *SubmitSpec) ([]UniformTasks, error) {
	p, err := ReadSpec(spec.Ad)
	if err != nil {
		return nil, err
	}
	var split []TaskColumn
	for _, c := range spec.Columns {
		if IsOverridable(c.Name) && len(c.Values) == spec.Count {
			split = append(split, c)
		}
	}
	if len(split) == 0 {
		return []UniformTasks{{p.Resources, p.Walltime, p.ProcessLimits, requestedLimits(spec.Ad), p.GangSize,
			spec.Count}}, nil
	}
	index, limits := map[UniformTasks]int{}, requestedLimits(spec.Ad)
	var all []UniformTasks
	for i := range spec.Count {
		one := p
		for _, c := range split {
			if err := one.OverrideAttr(c.Name, c.Values[i]); err != nil {
				return nil, fmt.Errorf("task %d: %w", i, err)
			}
		}
		k := UniformTasks{Resources: one.Resources, Walltime: one.Walltime, Bounds: one.ProcessLimits,
			ConcurrencyLimits: limits, Gang: one.GangSize}
		at, found := index[k]
		if !found {
			at = len(all)
			index[k], all = at, append(all, k)
		}
		all[at].Tasks++
	}
	return all, nil
}

func requestedLimits(ad *classad.Ad) string {
	text, _ := ad.Str(roost.AttrLimits)
	return text
}

// StreamTasks is what each task of a stream job asks for. It is false for a batch job,
// and for one that makes no sense.
func (s *SubmitSpec) StreamTasks() (each roost.Resources, ok bool) {
	p, err := ReadSpec(s.Ad)
	return p.Resources, err == nil && p.AppClass == roost.AppStream
}
