package metrics

import (
	"fmt"
	"slices"
)

// FamilyType is the Prometheus type of a metric family.
type FamilyType string

// The types in use.
const (
	CounterType   FamilyType = "counter"
	GaugeType     FamilyType = "gauge"
	HistogramType FamilyType = "histogram"
)

// OtherValue is the value of a label that sums what has no value of its own.
const OtherValue = "other"

// Label is a label of a family. Its values are a closed list, or any names, of which at
// most Most are exported beside OtherValue.
type Label struct {
	Name   string
	Values []string
	Most   int
}

// count returns how many values the label can have.
func (l Label) count() int {
	if l.Most > 0 {
		return l.Most + 1
	}
	return len(l.Values)
}

// Family describes one metric family, as the manual lists it.
type Family struct {
	Name    string // with the prefix of its daemon
	Type    FamilyType
	Help    string
	Labels  []Label
	Buckets []float64 // upper bounds of the classic buckets of a histogram, +Inf left out
}

// MaxSeries returns the most series that the family can have in one exposition.
func (f Family) MaxSeries() int {
	n := 1
	for _, l := range f.Labels {
		n *= l.count()
	}
	if f.Type == HistogramType {
		n *= len(f.Buckets) + 3 // +Inf, the sum, the count
	}
	return n
}

func (f Family) labelNames() []string {
	names := make([]string, len(f.Labels))
	for i, l := range f.Labels {
		names[i] = l.Name
	}
	return names
}

// combinations lists the label values of all series of a family with closed labels, in
// the order of index.
func (f Family) combinations() [][]string {
	all := [][]string{nil}
	for _, l := range f.Labels {
		if len(l.Values) == 0 {
			panic(fmt.Sprintf("metrics: %s: the label %s has no list of values", f.Name, l.Name))
		}
		var next [][]string
		for _, prefix := range all {
			for _, v := range l.Values {
				next = append(next, append(slices.Clip(prefix), v))
			}
		}
		all = next
	}
	return all
}

// index returns the index of a series from the indexes of its label values. A value that
// is beyond the end of a list counts as the last of the list.
func (f *Family) index(at []int) int {
	n := 0
	for i, l := range f.Labels {
		v := 0
		if i < len(at) {
			v = min(max(at[i], 0), len(l.Values)-1)
		}
		n = n*len(l.Values) + v
	}
	return n
}
