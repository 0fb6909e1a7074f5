package submit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
)

// sizeSettings are the settings of a vertical_autoscale block.
var sizeSettings = []string{"min_cpus", "max_cpus", "min_memory", "max_memory", "window", "every", "margin"}

const sizeExample = "vertical_autoscale {\n  max_cpus   = 4\n  max_memory = \"8GiB\"\n}"

// sizeReader reads one vertical_autoscale block.
type sizeReader struct {
	*autoscaleReader
	sizes autoscale.SizePolicy
}

// readVerticalAutoscale reads the vertical_autoscale block. It says between what bounds
// the cores and the memory of each task follow their use.
func (b *jobBuilder) readVerticalAutoscale() {
	scaled := newAutoscaleReader(b, "vertical_autoscale", sizeExample, sizeSettings,
		"the tasks may ask for different sizes",
		"Each task has values or an index of its own, and a size is found for all of them together.")
	if scaled == nil {
		return
	}
	r := &sizeReader{scaled, autoscale.DefaultSizePolicy()}
	problems := len(b.parser.diags)
	r.readSizes()
	r.readSizeTimes()
	if len(b.parser.diags) == problems {
		r.checkSizes()
	}
	b.ad.SetAd(roost.AttrVerticalAutoscale, r.ad)
}

// readSizes reads the bounds.
func (r *sizeReader) readSizes() {
	for _, c := range []struct {
		name, attribute string
		to              *roost.MilliCPU
	}{{"min_cpus", roost.AttrMinCpus, &r.sizes.MinCPU}, {"max_cpus", roost.AttrMaxCpus, &r.sizes.MaxCPU}} {
		if text, ok := r.quantity(c.name, readCores); ok {
			cores, _ := strconv.ParseFloat(text, 64)
			*c.to = roost.MilliCPU(math.Round(1000 * cores))
			r.ad.SetReal(c.attribute, cores)
		}
	}
	for _, m := range []struct {
		name, attribute string
		to              *roost.Bytes
	}{
		{"min_memory", roost.AttrMinMemory, &r.sizes.MinMemory},
		{"max_memory", roost.AttrMaxMemory, &r.sizes.MaxMemory},
	} {
		if text, ok := r.quantity(m.name, readSize(m.name)); ok {
			n, _ := strconv.ParseInt(text, 10, 64)
			mib := (n + int64(roost.MiB) - 1) / int64(roost.MiB)
			*m.to = roost.Bytes(mib) * roost.MiB
			r.ad.SetInt(m.attribute, mib)
		}
	}
}

// quantity reads a resource that is equal for all tasks.
func (r *sizeReader) quantity(name string, parse func(cty.Value) (string, error)) (text string, ok bool) {
	v, at, ok := r.constantValue(name)
	if !ok {
		return "", false
	}
	text, err := parse(v)
	var wrong *valueError
	if errors.As(err, &wrong) {
		r.reportProblem(at, wrong.summary, wrong.detail)
	}
	return text, err == nil
}

// readSizeTimes reads how fast sizes follow, and the margin.
func (r *sizeReader) readSizeTimes() {
	for _, t := range []struct {
		name, attribute string
		to              *time.Duration
	}{{"window", roost.AttrSizeWindow, &r.sizes.Window}, {"every", roost.AttrScaleEvery, &r.sizes.Every}} {
		if d, _, ok := r.resourceReader().constantDuration(t.name, 0); ok {
			*t.to = d
			r.ad.SetReal(t.attribute, d.Seconds())
		}
	}
	if r.body.Attributes["margin"] != nil {
		if part, ok := r.percentage("margin", autoscale.MaxMargin); ok {
			r.sizes.Margin = part
			r.ad.SetReal(roost.AttrMargin, part)
		}
	}
}

// checkSizes reports settings that contradict each other, or the rest of the job.
func (r *sizeReader) checkSizes() {
	if problems := r.sizes.Problems(); len(problems) > 0 {
		p := problems[0]
		at, ok := r.places[p.Field]
		if !ok {
			at = r.header
		}
		r.reportProblem(at, p.Field+" does not fit", capitalised(p.Cause)+" "+capitalised(p.Cure))
		return
	}
	scaled := r.job.ad
	horizontal, ok := scaled.Sub(roost.AttrAutoscale)
	if !ok {
		return
	}
	for _, both := range []struct {
		attribute, name string
		sized           bool
	}{{roost.AttrScaleCPU, "cpu", r.sizes.SizesCPU()}, {roost.AttrScaleMemory, "memory", r.sizes.SizesMemory()}} {
		if _, has := horizontal.Lookup(both.attribute); has && both.sized {
			r.reportProblem(r.header, "two blocks follow the same use", fmt.Sprintf("Autoscale adds tasks for their "+
				"use of %s, and vertical_autoscale gives each of them more of it: they work against each other. Scale "+
				"by something else, or remove one of the two.", both.name))
			return
		}
	}
}
