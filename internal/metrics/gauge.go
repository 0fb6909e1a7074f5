package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauge is a family of gauges. Its values are read from snapshots when somebody reads
// the page.
type Gauge struct {
	family Family
	desc   *prometheus.Desc
	kind   prometheus.ValueType
}

// Gauge registers a family of gauges.
func (r *Registry) Gauge(name, help string, labels ...Label) *Gauge {
	if r == nil {
		return nil
	}
	return r.addGauge(Family{Name: name, Type: GaugeType, Help: help, Labels: labels})
}

// ReadCounter registers a family of counters that somebody else counts, and that are read
// like gauges.
func (r *Registry) ReadCounter(name, help string, labels ...Label) *Gauge {
	if r == nil {
		return nil
	}
	return r.addGauge(Family{Name: name, Type: CounterType, Help: help, Labels: labels})
}

func (r *Registry) addGauge(f Family) *Gauge {
	g := &Gauge{family: r.add(f), kind: prometheus.GaugeValue}
	if f.Type == CounterType {
		g.kind = prometheus.CounterValue
	}
	g.desc = prometheus.NewDesc(g.family.Name, f.Help, g.family.labelNames(), nil)
	r.gauges.descs = append(r.gauges.descs, g.desc)
	return g
}

// OnRead has f set gauges whenever somebody reads the page. f must take no lock that the
// daemon may hold for long.
func (r *Registry) OnRead(f func(to *Reading)) {
	if r != nil {
		r.gauges.readers = append(r.gauges.readers, f)
	}
}

// gaugeCollector is all gauges of a registry.
type gaugeCollector struct {
	part    string
	descs   []*prometheus.Desc
	readers []func(*Reading)
}

// Describe implements prometheus.Collector.
func (c *gaugeCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *gaugeCollector) Collect(to chan<- prometheus.Metric) {
	for _, read := range c.readers {
		read(&Reading{to})
	}
}

// Reading is one read of the gauges.
type Reading struct{ to chan<- prometheus.Metric }

// Set exports the value for the label values with these indexes. Each series may be set
// once in a reading.
func (r *Reading) Set(g *Gauge, value float64, at ...int) {
	values := make([]string, len(g.family.Labels))
	for i, l := range g.family.Labels {
		v := 0
		if i < len(at) {
			v = min(max(at[i], 0), len(l.Values)-1)
		}
		values[i] = l.Values[v]
	}
	r.to <- prometheus.MustNewConstMetric(g.desc, g.kind, value, values...)
}

// SetLargest exports values by the open label of a family, which is its last. It exports
// the largest by name, and the sum of the rest. The indexes are of the labels before.
func (r *Reading) SetLargest(g *Gauge, byName map[string]float64, at ...int) {
	most := g.family.Labels[len(g.family.Labels)-1].Most
	r.SetNamed(g, byName, labelsOfLargest(byName, most), at...)
}

// SetHighest is SetLargest for values of which a sum means nothing: OtherValue is the
// highest of the rest.
func (r *Reading) SetHighest(g *Gauge, byName map[string]float64) {
	labels := labelsOfLargest(byName, g.family.Labels[0].Most)
	highest := map[string]float64{}
	for name, value := range byName {
		label := cmp.Or(labels[name], OtherValue)
		highest[label] = max(highest[label], value)
	}
	for label, value := range highest {
		r.to <- prometheus.MustNewConstMetric(g.desc, g.kind, value, label)
	}
}

// SetNamed is SetLargest with the label of each name; names without one are summed under
// OtherValue.
func (r *Reading) SetNamed(g *Gauge, byName map[string]float64, labels map[string]string, at ...int) {
	last := len(g.family.Labels) - 1
	values := make([]string, last+1)
	for i, l := range g.family.Labels[:last] {
		values[i] = l.Values[min(max(at[i], 0), len(l.Values)-1)]
	}
	for label, value := range sumByLabel(byName, labels) {
		values[last] = label
		r.to <- prometheus.MustNewConstMetric(g.desc, g.kind, value, values...)
	}
}

func sumByLabel(byName map[string]float64, labels map[string]string) map[string]float64 {
	out := make(map[string]float64, min(len(byName), len(labels)+1))
	for name, value := range byName {
		out[cmp.Or(labels[name], OtherValue)] += value
	}
	return out
}

// maxNameBytes bounds a name in a label.
const maxNameBytes = 64

// labelsOfLargest returns the labels of the names with the largest values, at most most
// of them. Names are made valid for a label, so two of them may have the same.
func labelsOfLargest(byName map[string]float64, most int) map[string]string {
	names := slices.SortedFunc(maps.Keys(byName), func(a, b string) int {
		return cmp.Or(cmp.Compare(byName[b], byName[a]), strings.Compare(a, b))
	})
	return labelsOfFirst(names, most)
}

// labelsOfFirst returns the labels of the first names.
func labelsOfFirst(names []string, most int) map[string]string {
	labels := make(map[string]string, min(len(names), most))
	for _, name := range names[:min(len(names), most)] {
		labels[name] = strings.ToValidUTF8(name[:min(len(name), maxNameBytes)], "")
	}
	return labels
}
