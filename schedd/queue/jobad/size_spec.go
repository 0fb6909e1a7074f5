package jobad

import (
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
)

// sizePolicy reads what the ad says of how large the tasks of a service are to be. It is
// nil if its user says it.
func (r *adReader) sizePolicy() *autoscale.SizePolicy {
	if !r.has(roost.AttrVerticalAutoscale) {
		return nil
	}
	ad, ok := r.ad.Sub(roost.AttrVerticalAutoscale)
	if !ok {
		r.fail(roost.AttrVerticalAutoscale, "an ad is wanted")
		return nil
	}
	in, p := adReader{ad: ad}, autoscale.DefaultSizePolicy()
	const longest, mostCores, mostMemory = maxSeconds * time.Second, 1 << 16, 1 << 40
	p.MinCPU = milliCPU(in.real(roost.AttrMinCpus, p.MinCPU.Cores(), mostCores))
	p.MaxCPU = milliCPU(in.real(roost.AttrMaxCpus, 0, mostCores))
	p.MinMemory = roost.Bytes(in.number(roost.AttrMinMemory, int64(p.MinMemory/roost.MiB), 0, mostMemory)) * roost.MiB
	p.MaxMemory = roost.Bytes(in.number(roost.AttrMaxMemory, 0, 0, mostMemory)) * roost.MiB
	p.Window = in.duration(roost.AttrSizeWindow, p.Window, 0, longest)
	p.Every = in.duration(roost.AttrScaleEvery, p.Every, 0, longest)
	p.Margin = in.real(roost.AttrMargin, p.Margin, autoscale.MaxMargin)
	for _, problem := range p.Problems() {
		in.fail(problem.Field, problem.Cause+": "+problem.Cure)
	}
	if in.err != nil {
		r.fail(roost.AttrVerticalAutoscale, in.err.Error())
	}
	return &p
}

func milliCPU(cores float64) roost.MilliCPU { return roost.MilliCPU(math.Round(1000 * cores)) }

// SizeOf is how much of a machine a job asks for, as far as that may follow its use.
func SizeOf(p *JobSpec) autoscale.Size {
	return autoscale.Size{CPU: p.Resources.CPU, Memory: p.Resources.Memory}
}
