package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// What queues say of resources that a machine does not hand out: bounds on what processes
// use, and what is counted for the pool.

// processBound is one of the bounds on what processes use.
type processBound struct {
	name, attribute string
	unit            int64 // of the attribute, in seconds or bytes
	text            func(int64) string
	field           func(b queue.ProcessLimits) int64
}

// processBounds lists them by PBS's name.
func processBounds() []processBound {
	seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
	length := func(n int64) string { return (time.Duration(n) * time.Second).String() }
	size := func(n int64) string { return roost.Bytes(n).String() }
	kib := int64(roost.KiB)
	return []processBound{
		{"cput", roost.AttrCPUTime, 1, length, func(b queue.ProcessLimits) int64 { return seconds(b.CPU) }},
		{"file", roost.AttrFileSize, kib, size, func(b queue.ProcessLimits) int64 { return int64(b.File) }},
		{"pcput", roost.AttrProcessCPU, 1, length, func(b queue.ProcessLimits) int64 { return seconds(b.ProcessCPU) }},
		{"pmem", roost.AttrProcessMemory, kib, size, func(b queue.ProcessLimits) int64 {
			return int64(b.ProcessMemory)
		}},
		{"pvmem", roost.AttrProcessVirtual, kib, size, func(b queue.ProcessLimits) int64 {
			return int64(b.ProcessVirtual)
		}},
		{"vmem", roost.AttrVirtual, kib, size, func(b queue.ProcessLimits) int64 { return int64(b.Virtual) }},
	}
}

func isProcessBound(name string) bool {
	return slices.ContainsFunc(processBounds(), func(b processBound) bool { return b.name == name })
}

// checkOtherResources holds a task against bounds of what machines do not hand out. One
// that says nothing of a resource has none of what is counted, and of the others as much
// as it likes, of which no least is too much.
func checkOtherResources(least, most *wire.Extent, k queue.UniformTasks) error {
	for _, b := range processBounds() {
		asks := b.field(k.Bounds)
		if n, ok := most.GetOthers()[b.name]; ok && (asks > n || asks == 0) {
			return fmt.Errorf("a task asks for %s of %s, and %s is the most here", amountOf(asks, true, b.text),
				b.name, b.text(n))
		}
		if n, ok := least.GetOthers()[b.name]; ok && asks != 0 && asks < n {
			return fmt.Errorf("a task asks for %s of %s, and %s is the least here", b.text(asks), b.name, b.text(n))
		}
	}
	takes := map[string]int64{}
	all, _ := roost.ParseLimitRequests(k.ConcurrencyLimits) // what makes no sense is refused elsewhere
	for _, l := range all {
		takes[l.Name] = int64(l.Count)
	}
	for _, name := range slices.Sorted(maps.Keys(most.GetOthers())) {
		if n := most.GetOthers()[name]; !isProcessBound(name) && takes[name] > n {
			return fmt.Errorf("a task asks for %d of %s, and %d is the most here", takes[name], name, n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(least.GetOthers())) {
		if n := least.GetOthers()[name]; !isProcessBound(name) && takes[name] < n {
			return fmt.Errorf("a task asks for %d of %s, and %d is the least here", takes[name], name, n)
		}
	}
	return nil
}

// fillOtherResources gives what an extent has beside what machines hand out; of a most,
// which nobody asks for, only bounds.
func (f *queueDefaults) fillOtherResources(d *wire.Extent, most bool) {
	for _, b := range processBounds() {
		if n, ok := d.GetOthers()[b.name]; ok {
			f.setDefault(b.attribute, &n, b.unit, 0)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.GetOthers())) {
		if n := d.GetOthers()[name]; !most && n > 0 && !isProcessBound(name) {
			f.addConcurrencyLimit(name, int(n))
		}
	}
}

// addConcurrencyLimit has a job take so many of what is counted for the pool, if it says
// nothing of that.
func (f *queueDefaults) addConcurrencyLimit(name string, n int) {
	if size, _ := f.spec.Ad.Int(roost.AttrGangSize); size > 1 {
		return // each of its parts would take as many
	}
	text, _ := f.spec.Ad.Str(roost.AttrLimits)
	all, err := roost.ParseLimitRequests(text)
	if err != nil || slices.ContainsFunc(all, func(l roost.LimitRequest) bool {
		return l.Name == name
	}) || len(all) >= roost.MaxLimitRequests {
		return
	}
	f.noteDefault(limitPrefix + name)
	setConcurrencyLimits(f.spec.Ad, append(all, roost.LimitRequest{Name: name, Count: n}))
}

// limitPrefix stands before what a queue has a job take in the list of what it gave.
const limitPrefix = roost.AttrLimits + ":"

// removeConcurrencyLimit takes one licence from an ad that a queue gave.
func removeConcurrencyLimit(ad adEditor, name string) {
	text, _ := ad.Str(roost.AttrLimits)
	all, err := roost.ParseLimitRequests(text)
	if err == nil {
		setConcurrencyLimits(ad, slices.DeleteFunc(all, func(l roost.LimitRequest) bool { return l.Name == name }))
	}
}

// adEditor is what is needed of an ad to change what it takes.
type adEditor interface {
	Str(name string) (string, bool)
	SetString(name, value string)
	Delete(name string) bool
}

func setConcurrencyLimits(ad adEditor, all []roost.LimitRequest) {
	var words []string
	for _, l := range all {
		words = append(words, l.String())
	}
	if len(words) == 0 {
		ad.Delete(roost.AttrLimits)
		return
	}
	ad.SetString(roost.AttrLimits, strings.Join(words, ", "))
}
