package qmgr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// resourceSpec describes a resource by PBS's name. It says where a range has it, how it
// is read and written, and its name in limits.
type resourceSpec struct {
	name   string
	amount string // name in a ledger.AmountLimits; empty: no limits
	field  func(e *ledger.ResourceRange) (get func() *int64, set func(*int64))
	parse  func(string) (int64, error)
	text   func(int64) string
}

// builtinResources lists the resources in the order in which they are written.
func builtinResources() []resourceSpec {
	plain := func(at func(*ledger.ResourceRange) **int64) func(e *ledger.ResourceRange) (func() *int64, func(*int64)) {
		return func(e *ledger.ResourceRange) (func() *int64, func(*int64)) {
			return func() *int64 { return *at(e) }, func(n *int64) { *at(e) = n }
		}
	}
	size := func(at func(*ledger.ResourceRange) **roost.Bytes) func(e *ledger.ResourceRange) (func() *int64,
		func(*int64)) {
		return func(e *ledger.ResourceRange) (func() *int64, func(*int64)) {
			return func() *int64 { return (*int64)(*at(e)) }, func(n *int64) { *at(e) = (*roost.Bytes)(n) }
		}
	}
	cores := func(e *ledger.ResourceRange) (func() *int64, func(*int64)) {
		return func() *int64 { return (*int64)(e.CPUs) }, func(n *int64) { e.CPUs = (*ledger.CoreCount)(n) }
	}
	other := func(name string) func(e *ledger.ResourceRange) (func() *int64, func(*int64)) {
		return func(e *ledger.ResourceRange) (func() *int64, func(*int64)) {
			return otherAmount(e, name), setOtherAmount(e, name)
		}
	}
	return []resourceSpec{
		{"cput", "", other("cput"), parseDuration, durationText},
		{"disk", "disk_bytes", size(func(e *ledger.ResourceRange) **roost.Bytes {
			return &e.Disk
		}), parseSize, sizeText},
		{"file", "", other("file"), parseSize, sizeText},
		{"mem", "memory_bytes", size(func(e *ledger.ResourceRange) **roost.Bytes {
			return &e.Memory
		}), parseSize, sizeText},
		{"ncpus", "cpus", cores, parseCores, func(n int64) string { return roost.MilliCPU(n).String() }},
		{"ngpus", "gpus", plain(func(e *ledger.ResourceRange) **int64 { return &e.GPUs }), parseCount, countText},
		{"nodect", "", plain(func(e *ledger.ResourceRange) **int64 { return &e.Nodes }), parseCount, countText},
		{"pcput", "", other("pcput"), parseDuration, durationText},
		{"pmem", "", other("pmem"), parseSize, sizeText},
		{"pvmem", "", other("pvmem"), parseSize, sizeText},
		{"vmem", "", other("vmem"), parseSize, sizeText},
		{"walltime", "", plain(func(e *ledger.ResourceRange) **int64 {
			return &e.Walltime
		}), parseDuration, durationText},
	}
}

// otherAmount returns an accessor for a resource that is not built in.
func otherAmount(e *ledger.ResourceRange, name string) func() *int64 {
	return func() *int64 {
		if n, ok := e.OtherBounds[name]; ok {
			return &n
		}
		return nil
	}
}

func setOtherAmount(e *ledger.ResourceRange, name string) func(*int64) {
	return func(n *int64) {
		own := maps.Clone(e.OtherBounds)
		if n == nil {
			delete(own, name)
		} else if own == nil {
			own = map[string]int64{name: *n}
		} else {
			own[name] = *n
		}
		if e.OtherBounds = own; len(own) == 0 {
			e.OtherBounds = nil
		}
	}
}

// countedResource describes a resource that the pool counts.
func countedResource(name string) resourceSpec {
	name = strings.ToLower(name)
	field := func(e *ledger.ResourceRange) (func() *int64, func(*int64)) {
		return otherAmount(e, name), setOtherAmount(e, name)
	}
	return resourceSpec{name: name, field: field, parse: parseCount, text: countText}
}

// allResources lists the built-in resources and the counted ones that a range has.
func allResources(e *ledger.ResourceRange) []resourceSpec {
	list := builtinResources()
	for _, name := range slices.Sorted(maps.Keys(e.OtherBounds)) {
		if !slices.Contains(ledger.BoundNames(), name) {
			list = append(list, countedResource(name))
		}
	}
	return list
}

// findResource returns the built-in resource of a name.
func findResource(name string) (resourceSpec, error) {
	for _, r := range builtinResources() {
		if r.name == name {
			return r, nil
		}
	}
	return resourceSpec{}, fmt.Errorf("%w: %s", errResource, name)
}

// countAccess returns how limits of a resource are read and written: cores are whole
// there.
func (r resourceSpec) countAccess() (parse func(string) (int64, error), text func(int64) string) {
	if r.name == "ncpus" {
		return parseCount, countText
	}
	return r.parse, r.text
}

func parseSize(text string) (int64, error) {
	n, ok := qsub.ParseSizeValue(text)
	if !ok {
		return 0, errValue
	}
	return int64(n), nil
}

// sizeText formats a size in the largest unit in which it is whole.
func sizeText(n int64) string {
	units := []string{"b", "kb", "mb", "gb", "tb", "pb"}
	at := 0
	for ; at < len(units)-1 && n >= 1024 && n%1024 == 0; at++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + units[at]
}

func parseDuration(text string) (int64, error) {
	d, ok := qsub.ParseDuration(text)
	if !ok {
		return 0, errValue
	}
	return int64((d + time.Second - 1) / time.Second), nil
}

func durationText(s int64) string { return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60) }

func parseCores(text string) (int64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 1e9) || strings.ContainsAny(text, "eExX") {
		return 0, errValue
	}
	return int64(f*1000 + 0.5), nil
}
