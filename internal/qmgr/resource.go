package qmgr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// resource is one by PBS's name: where it stands in an extent, how it is read and written, and how it is called where amounts are counted.
type resource struct {
	name   string
	amount string // in a ledger.Amount; empty: it is not counted there
	field  func(e *ledger.Extent) (get func() *int64, set func(*int64))
	parse  func(string) (int64, error)
	text   func(int64) string
}

// resources lists them in the order in which they are written.
func resources() []resource {
	plain := func(at func(*ledger.Extent) **int64) func(e *ledger.Extent) (func() *int64, func(*int64)) {
		return func(e *ledger.Extent) (func() *int64, func(*int64)) {
			return func() *int64 { return *at(e) }, func(n *int64) { *at(e) = n }
		}
	}
	size := func(at func(*ledger.Extent) **roost.Bytes) func(e *ledger.Extent) (func() *int64, func(*int64)) {
		return func(e *ledger.Extent) (func() *int64, func(*int64)) {
			return func() *int64 { return (*int64)(*at(e)) }, func(n *int64) { *at(e) = (*roost.Bytes)(n) }
		}
	}
	cores := func(e *ledger.Extent) (func() *int64, func(*int64)) {
		return func() *int64 { return (*int64)(e.CPUs) }, func(n *int64) { e.CPUs = (*ledger.Cores)(n) }
	}
	other := func(name string) func(e *ledger.Extent) (func() *int64, func(*int64)) {
		return func(e *ledger.Extent) (func() *int64, func(*int64)) { return getOther(e, name), setOther(e, name) }
	}
	return []resource{
		{"cput", "", other("cput"), readLength, lengthText},
		{"disk", "disk_bytes", size(func(e *ledger.Extent) **roost.Bytes { return &e.Disk }), readSize, sizeText},
		{"file", "", other("file"), readSize, sizeText},
		{"mem", "memory_bytes", size(func(e *ledger.Extent) **roost.Bytes { return &e.Memory }), readSize, sizeText},
		{"ncpus", "cpus", cores, readCores, func(n int64) string { return roost.MilliCPU(n).String() }},
		{"ngpus", "gpus", plain(func(e *ledger.Extent) **int64 { return &e.GPUs }), readCount, countText},
		{"nodect", "", plain(func(e *ledger.Extent) **int64 { return &e.Nodes }), readCount, countText},
		{"pcput", "", other("pcput"), readLength, lengthText},
		{"pmem", "", other("pmem"), readSize, sizeText},
		{"pvmem", "", other("pvmem"), readSize, sizeText},
		{"vmem", "", other("vmem"), readSize, sizeText},
		{"walltime", "", plain(func(e *ledger.Extent) **int64 { return &e.Walltime }), readLength, lengthText},
	}
}

// getOther and setOther are how one of the others of an extent is read and set. The map may be another object's, too.
func getOther(e *ledger.Extent, name string) func() *int64 {
	return func() *int64 {
		if n, ok := e.Others[name]; ok {
			return &n
		}
		return nil
	}
}

func setOther(e *ledger.Extent, name string) func(*int64) {
	return func(n *int64) {
		own := maps.Clone(e.Others)
		if n == nil {
			delete(own, name)
		} else if own == nil {
			own = map[string]int64{name: *n}
		} else {
			own[name] = *n
		}
		if e.Others = own; len(own) == 0 {
			e.Others = nil
		}
	}
}

// counted is a resource that is counted for the pool.
func counted(name string) resource {
	name = strings.ToLower(name)
	field := func(e *ledger.Extent) (func() *int64, func(*int64)) { return getOther(e, name), setOther(e, name) }
	return resource{name: name, field: field, parse: readCount, text: countText}
}

// all lists the resources of an extent, with those that are counted for the pool.
func all(e *ledger.Extent) []resource {
	list := resources()
	for _, name := range slices.Sorted(maps.Keys(e.Others)) {
		if !slices.Contains(ledger.BoundNames(), name) {
			list = append(list, counted(name))
		}
	}
	return list
}

// resourceOf finds one by its name.
func resourceOf(name string) (resource, error) {
	for _, r := range resources() {
		if r.name == name {
			return r, nil
		}
	}
	return resource{}, fmt.Errorf("%w: %s", errResource, name)
}

// counter is how a resource is read and written where amounts of it are counted: cores are whole there.
func (r resource) counter() (parse func(string) (int64, error), text func(int64) string) {
	if r.name == "ncpus" {
		return readCount, countText
	}
	return r.parse, r.text
}

func readSize(text string) (int64, error) {
	n, ok := pbs.Size(text)
	if !ok {
		return 0, errValue
	}
	return int64(n), nil
}

// sizeText writes a size in the largest unit in which it is whole.
func sizeText(n int64) string {
	units := []string{"b", "kb", "mb", "gb", "tb", "pb"}
	at := 0
	for ; at < len(units)-1 && n >= 1024 && n%1024 == 0; at++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + units[at]
}

func readLength(text string) (int64, error) {
	d, ok := pbs.Length(text)
	if !ok {
		return 0, errValue
	}
	return int64((d + time.Second - 1) / time.Second), nil
}

func lengthText(s int64) string { return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60) }

func readCores(text string) (int64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 1e9) || strings.ContainsAny(text, "eExX") {
		return 0, errValue
	}
	return int64(f*1000 + 0.5), nil
}
