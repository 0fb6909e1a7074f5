package document

import (
	"fmt"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// VerticalAutoscale is how the size of a service's tasks follows their use. Memory is in
// bytes.
type VerticalAutoscale struct {
	MinCpus   float64 `json:"min_cpus,omitempty"`
	MaxCpus   float64 `json:"max_cpus,omitempty"` // without it the cores stay as they are
	MinMemory int64   `json:"min_memory,omitempty"`
	MaxMemory int64   `json:"max_memory,omitempty"` // without it the memory stays as it is

	Cpus         float64 `json:"cpus"`
	Memory       int64   `json:"memory"`
	WantedCpus   float64 `json:"wanted_cpus"`
	WantedMemory int64   `json:"wanted_memory"`
	UsedCpus     float64 `json:"used_cpus"`
	UsedMemory   int64   `json:"used_memory"`
	Samples      uint32  `json:"samples"`
	Reason       string  `json:"reason,omitempty"`
	Problem      string  `json:"problem,omitempty"`
	At           string  `json:"at,omitempty"`
}

// VerticalAutoscaleOf returns how the size of a service's tasks follows their use; nil
// where it does not.
func VerticalAutoscaleOf(m *scheddapi.SizeStatus) *VerticalAutoscale {
	if m == nil {
		return nil
	}
	return &VerticalAutoscale{MinCpus: m.GetMinCpus(), MaxCpus: m.GetMaxCpus(), MinMemory: m.GetMinMemory(),
		MaxMemory: m.GetMaxMemory(), Cpus: m.GetCpus(), Memory: m.GetMemory(), WantedCpus: m.GetWantedCpus(),
		WantedMemory: m.GetWantedMemory(), UsedCpus: m.GetUsedCpus(), UsedMemory: m.GetUsedMemory(),
		Samples: m.GetSamples(), Reason: m.GetReason(), Problem: m.GetProblem(), At: Timestamp(m.GetAt())}
}

// Text says between what bounds the size is, and what it is now.
func (v *VerticalAutoscale) Text() (text string) {
	cores := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	if v.MaxCpus > 0 {
		text = fmt.Sprintf("%s to %s cores, now %s", cores(v.MinCpus), cores(v.MaxCpus), cores(v.Cpus))
	}
	if v.MaxCpus > 0 && v.MaxMemory > 0 {
		text += "; "
	}
	if v.MaxMemory > 0 {
		text += fmt.Sprintf("%v to %v of memory, now %v", roost.Bytes(v.MinMemory), roost.Bytes(v.MaxMemory),
			roost.Bytes(v.Memory))
	}
	return text
}
