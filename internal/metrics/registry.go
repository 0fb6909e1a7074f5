package metrics

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/roost-batch/roost"
)

// maxClassicBuckets bounds the classic buckets of a histogram, +Inf included. Servers
// that know native histograms get those, which are finer.
const maxClassicBuckets = 12

// maxSeries returns the most series that a daemon may export.
func maxSeries(part string) int {
	switch part {
	case "schedd":
		return 440
	case usersPart:
		return 1200
	case "negotiator":
		return 500
	case "collector":
		return 2000
	case "startd":
		return 150
	case "web":
		return 600
	case "accountant":
		return 300
	case "checkpoint_server":
		return 40
	}
	panic(fmt.Sprintf("metrics: nothing is exported of %q", part))
}

// Registry holds the metric families of one daemon. A nil registry makes nil handles.
type Registry struct {
	part     string
	registry *prometheus.Registry
	families []Family
	series   int // that all families can have together
	gauges   *gaugeCollector
}

// NewRegistry returns the registry of a daemon: "schedd", "negotiator", "collector",
// "startd", "web", "accountant" or "checkpoint_server". It has only what all have.
func NewRegistry(part string) *Registry {
	r := newRegistry(part)
	build := r.Gauge("build_info", "Always 1; the label has the version of the program.",
		Label{Name: "version", Values: []string{roost.Version}})
	r.OnRead(func(to *Reading) { to.Set(build, 1, 0) })
	return r
}

// newRegistry returns a registry without families.
func newRegistry(part string) *Registry {
	return &Registry{part: part, registry: prometheus.NewRegistry(), gauges: &gaugeCollector{part: part}}
}

// Families lists what the registry has, in the order of registration.
func (r *Registry) Families() []Family { return r.families }

// seal ends the registration of families.
func (r *Registry) seal() {
	if r != nil {
		r.registry.MustRegister(r.gauges)
	}
}

// add registers a family, by its name without prefix. It panics when the daemon could
// have more series than it may have: that is a mistake in this package.
func (r *Registry) add(f Family) Family {
	f.Name = "roost_" + r.part + "_" + f.Name
	if f.Type == HistogramType && len(f.Buckets)+1 > maxClassicBuckets {
		panic(fmt.Sprintf("metrics: %s has more than %d buckets", f.Name, maxClassicBuckets))
	}
	if (f.Type == CounterType) != strings.HasSuffix(f.Name, "_total") {
		panic(fmt.Sprintf("metrics: the name of %s does not fit a %s", f.Name, f.Type))
	}
	r.families = append(r.families, f)
	if r.series += f.MaxSeries(); r.series > maxSeries(r.part) {
		panic(fmt.Sprintf("metrics: with %s the %s could export %d series, and may %d", f.Name, r.part, r.series,
			maxSeries(r.part)))
	}
	return f
}
