package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// ResourceRange is an amount of resources for a duration; nil means not set.
type ResourceRange struct {
	CPUs     *CoreCount   `json:"cpus,omitempty"`
	Memory   *roost.Bytes `json:"memory_bytes,omitempty"`
	Disk     *roost.Bytes `json:"disk_bytes,omitempty"`
	GPUs     *int64       `json:"gpus,omitempty"`
	Walltime *int64       `json:"walltime_seconds,omitempty"`
	Nodes    *int64       `json:"nodes,omitempty"` // machines of a task that runs on several; nodect

	// OtherBounds contains amounts by name: those of [BoundNames] in seconds or bytes,
	// any other as units of the [ConcurrencyLimit] of that name.
	OtherBounds map[string]int64 `json:"others,omitempty"`
	// MachineAttrs are machine attributes that a job requests unless it names them
	// itself: True, False, or a word.
	MachineAttrs map[string]string `json:"words,omitempty"`
}

// BoundNames lists the resources that bound the processes of a job, by their PBS names.
// Names that begin with p bound each process, the others all together. See [BoundIsTime].
func BoundNames() []string { return []string{"cput", "file", "pcput", "pmem", "pvmem", "vmem"} }

// BoundIsTime reports whether one of BoundNames is in seconds; otherwise it is in bytes.
func BoundIsTime(name string) bool { return name == "cput" || name == "pcput" }

// Any reports whether any field is set.
func (e ResourceRange) Any() bool { return len(e.dimensions())+len(e.MachineAttrs) > 0 }

// dimensions lists the dimensions that are set, including the walltime.
func (e ResourceRange) dimensions() []BoundedDimension {
	all := (ResourceBounds{CPUs: e.CPUs, Memory: e.Memory, Disk: e.Disk, GPUs: e.GPUs}).Bounds()
	if e.Walltime != nil {
		text := fmt.Sprintf("%d s", *e.Walltime)
		if *e.Walltime >= 0 && *e.Walltime <= maxWalltime {
			text = (time.Duration(*e.Walltime) * time.Second).String()
		}
		all = append(all, BoundedDimension{"walltime", *e.Walltime, text})
	}
	if e.Nodes != nil {
		all = append(all, BoundedDimension{"nodes", *e.Nodes, fmt.Sprint(*e.Nodes)})
	}
	for _, name := range slices.Sorted(maps.Keys(e.OtherBounds)) {
		n := e.OtherBounds[name]
		all = append(all, BoundedDimension{name, n, OtherText(name, n)})
	}
	return all
}

// OtherText formats an amount of one of [ResourceRange.OtherBounds] for people.
func OtherText(name string, n int64) string {
	switch {
	case !slices.Contains(BoundNames(), name):
		return fmt.Sprint(n)
	case !BoundIsTime(name):
		return roost.Bytes(n).String()
	case n < 0 || n > maxWalltime:
		return fmt.Sprintf("%d s", n)
	}
	return (time.Duration(n) * time.Second).String()
}

// checkMachineAttrs checks the machine attributes that jobs request.
func (e ResourceRange) checkMachineAttrs() error {
	if len(e.MachineAttrs) > maxMachineAttrs {
		return fmt.Errorf("%d attributes of machines, and %d is the most", len(e.MachineAttrs), maxMachineAttrs)
	}
	for _, name := range slices.Sorted(maps.Keys(e.MachineAttrs)) {
		word := e.MachineAttrs[name]
		if err := checkPlainName("a resource", name); err != nil {
			return err
		}
		if strings.Contains(name, "-") || '0' <= name[0] && name[0] <= '9' {
			return fmt.Errorf("%q cannot be an attribute of machines: use letters, digits and _, and begin with "+
				"a letter", name)
		}
		if word == "" || len(word) > 2*maxNameLength || strings.ContainsFunc(word, func(r rune) bool {
			return r < ' ' || r == 0x7f || r == 0xfffd
		}) {
			return fmt.Errorf("%s: %q is no word", name, word)
		}
	}
	return nil
}

// maxMachineAttrs bounds the number of machine attributes in a range.
const maxMachineAttrs = 32

// checkOtherBound checks one of OtherBounds.
func checkOtherBound(name string, n int64) error {
	most := int64(maxAmount)
	switch {
	case !slices.Contains(BoundNames(), name):
		if !roost.IsLimitName(name) {
			return fmt.Errorf("%q is neither one of %s nor the name of a limit", name, strings.Join(BoundNames(), ", "))
		}
		most = maxCount
	case BoundIsTime(name):
		most = maxWalltime
	}
	if n < 0 || n > most {
		return fmt.Errorf("%s of %s: it must be between 0 and %s", name, OtherText(name, n), OtherText(name, most))
	}
	return nil
}

// maxWalltime is in seconds: a hundred years.
const maxWalltime = 100 * 366 * 24 * 3600

func (e ResourceRange) check() error {
	if err := (ResourceBounds{CPUs: e.CPUs, Memory: e.Memory, Disk: e.Disk, GPUs: e.GPUs}).check(); err != nil {
		return err
	}
	if w := e.Walltime; w != nil && (*w < 1 || *w > maxWalltime) {
		return fmt.Errorf("a walltime of %d seconds: it must be between 1 and %d", *w, int64(maxWalltime))
	}
	if n := e.Nodes; n != nil && (*n < 0 || *n > maxCount) {
		return fmt.Errorf("%d nodes: it must be between 0 and %d", *n, maxCount)
	}
	for _, name := range slices.Sorted(maps.Keys(e.OtherBounds)) {
		if err := checkOtherBound(name, e.OtherBounds[name]); err != nil {
			return err
		}
	}
	if err := e.checkMachineAttrs(); err != nil {
		return err
	}
	return nil
}

// firstAbove names a dimension in which e exceeds o, if both set it.
func (e ResourceRange) firstAbove(o ResourceRange) error {
	for _, d := range e.dimensions() {
		for _, m := range o.dimensions() {
			if d.Name == m.Name && d.Value > m.Value {
				return fmt.Errorf("%s of %s is more than %s", d.Name, d.Text, m.Text)
			}
		}
	}
	return nil
}

func checkRanges(standard, least, most ResourceRange) error {
	if len(least.MachineAttrs)+len(most.MachineAttrs) > 0 {
		return errors.New("attributes of machines have no least and no most")
	}
	for i, e := range []ResourceRange{standard, least, most} {
		if err := e.check(); err != nil {
			return fmt.Errorf("%s: %w", [...]string{"default", "least", "most"}[i], err)
		}
	}
	return nil
}
