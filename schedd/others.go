package schedd

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

// What queues say of resources that a machine does not hand out: bounds on what processes use, and what is counted for the pool.

// bounded is one of the bounds on what processes use.
type bounded struct {
	name, attribute string
	unit            int64 // of the attribute, in seconds or bytes
	text            func(int64) string
	of              func(b queue.Bounds) int64
}

// boundeds lists them by PBS's name.
func boundeds() []bounded {
	seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
	length := func(n int64) string { return (time.Duration(n) * time.Second).String() }
	size := func(n int64) string { return roost.Bytes(n).String() }
	kib := int64(roost.KiB)
	return []bounded{
		{"cput", roost.AttrCPUTime, 1, length, func(b queue.Bounds) int64 { return seconds(b.CPU) }},
		{"file", roost.AttrFileSize, kib, size, func(b queue.Bounds) int64 { return int64(b.File) }},
		{"pcput", roost.AttrProcessCPU, 1, length, func(b queue.Bounds) int64 { return seconds(b.ProcessCPU) }},
		{"pmem", roost.AttrProcessMemory, kib, size, func(b queue.Bounds) int64 { return int64(b.ProcessMemory) }},
		{"pvmem", roost.AttrProcessVirtual, kib, size, func(b queue.Bounds) int64 { return int64(b.ProcessVirtual) }},
		{"vmem", roost.AttrVirtual, kib, size, func(b queue.Bounds) int64 { return int64(b.Virtual) }},
	}
}

func isBound(name string) bool {
	return slices.ContainsFunc(boundeds(), func(b bounded) bool { return b.name == name })
}

// suitOthers holds a task against bounds of what machines do not hand out. One that says nothing of a resource has none of what is counted, and of the
// others as much as it likes, of which no least is too much.
func suitOthers(least, most *wire.Extent, k queue.Each) error {
	for _, b := range boundeds() {
		asks := b.of(k.Bounds)
		if n, ok := most.GetOthers()[b.name]; ok && (asks > n || asks == 0) {
			return fmt.Errorf("a task asks for %s of %s, and %s is the most here", amountOf(asks, true, b.text), b.name, b.text(n))
		}
		if n, ok := least.GetOthers()[b.name]; ok && asks != 0 && asks < n {
			return fmt.Errorf("a task asks for %s of %s, and %s is the least here", b.text(asks), b.name, b.text(n))
		}
	}
	takes := map[string]int64{}
	all, _ := roost.ParseLicences(k.Licences) // what makes no sense is refused elsewhere
	for _, l := range all {
		takes[l.Name] = int64(l.Count)
	}
	for _, name := range slices.Sorted(maps.Keys(most.GetOthers())) {
		if n := most.GetOthers()[name]; !isBound(name) && takes[name] > n {
			return fmt.Errorf("a task asks for %d of %s, and %d is the most here", takes[name], name, n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(least.GetOthers())) {
		if n := least.GetOthers()[name]; !isBound(name) && takes[name] < n {
			return fmt.Errorf("a task asks for %d of %s, and %d is the least here", takes[name], name, n)
		}
	}
	return nil
}

// others gives what an extent has beside what machines hand out; of a most, which nobody asks for, only bounds.
func (f *filling) others(d *wire.Extent, most bool) {
	for _, b := range boundeds() {
		if n, ok := d.GetOthers()[b.name]; ok {
			f.give(b.attribute, &n, b.unit, 0)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.GetOthers())) {
		if n := d.GetOthers()[name]; !most && n > 0 && !isBound(name) {
			f.take(name, int(n))
		}
	}
}

// take has a job take so many of what is counted for the pool, if it says nothing of that.
func (f *filling) take(name string, n int) {
	if size, _ := f.spec.Ad.Int(roost.AttrGangSize); size > 1 {
		return // each of its parts would take as many
	}
	text, _ := f.spec.Ad.Str(roost.AttrLimits)
	all, err := roost.ParseLicences(text)
	if err != nil || slices.ContainsFunc(all, func(l roost.Licences) bool { return l.Name == name }) || len(all) >= roost.MaxLicences {
		return
	}
	f.note(taken + name)
	setLicences(f.spec.Ad, append(all, roost.Licences{Name: name, Count: n}))
}

// taken stands before what a queue has a job take in the list of what it gave.
const taken = roost.AttrLimits + ":"

// untake takes one licence from an ad that a queue gave.
func untake(ad adOf, name string) {
	text, _ := ad.Str(roost.AttrLimits)
	all, err := roost.ParseLicences(text)
	if err == nil {
		setLicences(ad, slices.DeleteFunc(all, func(l roost.Licences) bool { return l.Name == name }))
	}
}

// adOf is what is needed of an ad to change what it takes.
type adOf interface {
	Str(name string) (string, bool)
	SetString(name, value string)
	Delete(name string) bool
}

func setLicences(ad adOf, all []roost.Licences) {
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
