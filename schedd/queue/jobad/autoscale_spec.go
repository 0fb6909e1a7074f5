package jobad

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
)

// autoscalePolicy reads what the ad says of how many tasks a service is to have; nil: its
// user says it.
func (r *adReader) autoscalePolicy() *autoscale.Policy {
	if !r.has(roost.AttrAutoscale) {
		return nil
	}
	ad, ok := r.ad.Sub(roost.AttrAutoscale)
	if !ok {
		r.fail(roost.AttrAutoscale, "an ad is wanted")
		return nil
	}
	in, p := adReader{ad: ad}, autoscale.DefaultPolicy()
	p.Min = int(in.number(roost.AttrScaleMin, 1, 1, roost.MaxTasks))
	p.Max = int(in.number(roost.AttrScaleMax, 0, 1, roost.MaxTasks))
	in.scaleSource(&p)
	p.Tolerance = in.real(roost.AttrTolerance, p.Tolerance, 1)
	const longest = maxSeconds * time.Second
	p.UpWindow = in.duration(roost.AttrUpWindow, p.UpWindow, 0, longest)
	p.DownWindow = in.duration(roost.AttrDownWindow, p.DownWindow, 0, longest)
	p.Period = in.duration(roost.AttrScalePeriod, p.Period, 0, longest)
	p.Every = in.duration(roost.AttrScaleEvery, p.Every, 0, longest)
	p.UpBy, p.UpBySet = in.amount(roost.AttrUpBy, p.UpBy)
	p.DownBy, _ = in.amount(roost.AttrDownBy, p.DownBy)
	for _, problem := range p.Problems() {
		in.fail(problem.Field, problem.Cause+": "+problem.Cure)
	}
	if in.err != nil {
		r.fail(roost.AttrAutoscale, in.err.Error())
	}
	return &p
}

// scaleSource reads by what a service is scaled. It is one thing.
func (r *adReader) scaleSource(p *autoscale.Policy) {
	for _, s := range []struct {
		attribute string
		source    autoscale.Source
		to        *string
	}{
		{roost.AttrScaleMetric, autoscale.TaskMetric, &p.Metric}, {roost.AttrScaleCPU, autoscale.CPUUse, nil},
		{roost.AttrScaleMemory, autoscale.MemoryUse, nil},
		{roost.AttrWaitingQueue, autoscale.WaitingTasks, &p.WaitingQueue},
		{roost.AttrWaitingJob, autoscale.WaitingTasks, &p.WaitingJob},
	} {
		switch {
		case !r.has(s.attribute):
			continue
		case p.Source != autoscale.NoSource:
			r.fail(s.attribute, "a service is scaled by one thing")
		case s.to != nil:
			*s.to, p.Target = r.text(s.attribute, ""), r.real(roost.AttrScaleTarget, 0, autoscale.MaxTarget)
		default:
			p.Target = r.real(s.attribute, 0, autoscale.MaxUse)
		}
		p.Source = s.source
	}
	if p.Source == autoscale.TaskMetric {
		p.Port, p.Path = r.text(roost.AttrScalePort, ""), r.text(roost.AttrScalePath, p.Path)
		if err := roost.CheckMetricName(p.Metric); err != nil {
			r.fail(roost.AttrScaleMetric, err.Error())
		}
		if !strings.HasPrefix(p.Path, "/") || len(p.Path) > maxScalePath {
			r.fail(roost.AttrScalePath, "a path begins with / and is not longer than 1024 bytes")
		}
	}
}

// maxScalePath bounds the path of a metric, in bytes.
const maxScalePath = 1024

// checkAutoscale checks a policy against the rest of its job.
func (r *adReader) checkAutoscale(p *JobSpec) {
	if p.Service == nil || p.Service.Autoscale == nil {
		return
	}
	scale := p.Service.Autoscale
	hasPort := slices.ContainsFunc(p.Ports, func(port roost.PortRequest) bool { return port.Name == scale.Port })
	switch {
	case scale.Source == autoscale.TaskMetric && !hasPort:
		r.fail(roost.AttrAutoscale, fmt.Sprintf("the job has no port %q", scale.Port))
	case p.Service.Sizes != nil && (scale.Source == autoscale.CPUUse && p.Service.Sizes.SizesCPU() ||
		scale.Source == autoscale.MemoryUse && p.Service.Sizes.SizesMemory()):
		r.fail(roost.AttrAutoscale, "it follows the use that "+roost.AttrVerticalAutoscale+" follows, too, and they "+
			"would work against each other")
	case scale.Source == autoscale.MemoryUse && p.Resources.Memory <= 0:
		r.fail(roost.AttrAutoscale, "it asks for no memory of which a part could be used")
	}
	for _, problem := range p.Update.Problems(scale.Min) {
		if !problem.Warning {
			r.fail(roost.AttrAutoscale, fmt.Sprintf("with min = %d, the setting %s of updates does not fit: %s",
				scale.Min, problem.Field, problem.Text))
		}
	}
}
