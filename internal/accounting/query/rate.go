package query

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// RateLine is a rate: what an hour of resources costs from a time on.
type RateLine struct {
	ID    int64  `json:"id,omitempty"`
	Group string `json:"group,omitempty"` // with those below it; empty: the pool
	From  Time   `json:"from"`
	Rule  string `json:"rule"` // dominant, sum or max

	CoreHour Units `json:"core_hour"`
	GiBHour  Units `json:"gib_hour,omitempty"`
	GPUHour  Units `json:"gpu_hour,omitempty"`

	// the machine that the rule dominant takes shares of
	Cores     float64 `json:"machine_cores,omitempty"`
	Memory    int64   `json:"machine_memory_bytes,omitempty"`
	GPUs      int     `json:"machine_gpus,omitempty"`
	GPUMemory int64   `json:"gpu_memory_bytes,omitempty"` // of one GPU: less of it is a share

	Bands        map[string]Factor `json:"bands,omitempty"`   // factors other than 1
	Classes      map[string]Factor `json:"classes,omitempty"` // by class of the machine, likewise
	UsefulOnly   bool              `json:"useful_only,omitempty"`
	MonthlyGrant Units             `json:"monthly_grant,omitempty"` // free for each payer
	By           string            `json:"set_by,omitempty"`
	Set          Time              `json:"set_at,omitempty"`
}

// one is the factor that changes nothing.
const one Factor = 1000

// ruleNames are the names of the rules, in their order.
var ruleNames = [...]string{"dominant", "sum", "max"}

// maxClasses bounds the factors of a rate.
const maxClasses = 1000

func rateLine(r *accounting.Rate) RateLine {
	l := RateLine{ID: r.ID, Group: r.Group, From: Time(r.From), Rule: fmt.Sprint(r.Rule), CoreHour: Units(r.CoreHour),
		GiBHour: Units(r.GiBHour), GPUHour: Units(r.GPUHour), Cores: r.Core.Cores(), Memory: int64(r.Mem),
		GPUs: r.GPUs, GPUMemory: int64(r.GPUMem), UsefulOnly: r.UsefulOnly, MonthlyGrant: Units(r.MonthlyGrant),
		By: r.By, Set: Time(r.Set)}
	if i := int(r.Rule) - 1; i >= 0 && i < len(ruleNames) {
		l.Rule = ruleNames[i]
	}
	for band, name := range roost.BandNames() {
		if f := Factor(r.BandPermille[band]); f != one {
			if l.Bands == nil {
				l.Bands = map[string]Factor{}
			}
			l.Bands[name] = f
		}
	}
	for class, f := range r.ClassPermille {
		if l.Classes == nil {
			l.Classes = map[string]Factor{}
		}
		l.Classes[class] = Factor(f)
	}
	return l
}

// Rate returns the rate that a line describes.
func (l *RateLine) Rate() (r accounting.Rate, err error) {
	r = accounting.Rate{Group: l.Group, From: accounting.Millis(l.From),
		Rule: accounting.RateRule(slices.Index(ruleNames[:], l.Rule) + 1), CoreHour: accounting.MicroUnits(l.CoreHour),
		GiBHour: accounting.MicroUnits(l.GiBHour), GPUHour: accounting.MicroUnits(l.GPUHour),
		Mem: roost.Bytes(l.Memory), GPUs: l.GPUs, GPUMem: roost.Bytes(l.GPUMemory), UsefulOnly: l.UsefulOnly,
		MonthlyGrant: accounting.MicroUnits(l.MonthlyGrant), By: l.By, Set: accounting.Millis(l.Set)}
	if !(l.Cores >= 0 && l.Cores < 1e9) {
		return r, fmt.Errorf("rate: %w: the machine has %g cores", roost.Invalid, l.Cores)
	}
	r.Core = roost.MilliCPU(l.Cores * 1000)
	for i := range r.BandPermille {
		r.BandPermille[i] = int64(one)
	}
	for name, f := range l.Bands {
		band, err := roost.ParsePriorityBand(name)
		if err != nil {
			return r, fmt.Errorf("rate: %w: %w", roost.Invalid, err)
		}
		r.BandPermille[band] = int64(f)
	}
	if len(l.Classes) > maxClasses {
		return r, fmt.Errorf("rate: %w: it has factors of more than %d classes", roost.Invalid, maxClasses)
	}
	for class, f := range l.Classes {
		if class == "" || len(class) > maxNameBytes {
			return r, fmt.Errorf("rate: %w: a class of machines has a name of 1 to %d bytes", roost.Invalid,
				maxNameBytes)
		}
		if r.ClassPermille == nil {
			r.ClassPermille = map[string]int64{}
		}
		r.ClassPermille[class] = int64(f)
	}
	if len(l.Group) > maxNameBytes {
		return r, fmt.Errorf("rate: %w: the name of the group has more than %d bytes", roost.Invalid, maxNameBytes)
	}
	return r, r.Check()
}

// FactorText writes factors for people, as "free×0.5".
func FactorText(factors map[string]Factor) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(factors)) {
		parts = append(parts, name+"×"+factors[name].String())
	}
	return strings.Join(parts, " ")
}

// maxNameBytes bounds the names that a change may have.
const maxNameBytes = 255
