package jobad

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// overridableAttrs are the columns that override an attribute of the ad for each task.
// They divide a job's tasks into classes.
var overridableAttrs = []string{
	roost.AttrRequestCpus, roost.AttrRequestMemory, roost.AttrRequestDisk, roost.AttrRequestGpus,
	roost.AttrRequestGpuMem, roost.AttrRequestDiskIO, roost.AttrRequestNet,
	roost.AttrRequirements, roost.AttrRank, roost.AttrWalltime, roost.AttrProcesses,
}

// IsOverridable reports whether a column of that name overrides an attribute of the ad.
func IsOverridable(name string) bool { return slices.Contains(overridableAttrs, name) }

// OverrideAttr applies one task's value of a column to a plan.
func (p *JobSpec) OverrideAttr(name, value string) error {
	bad := func(why string) error { return fmt.Errorf("column %s: %w: %q %s", name, roost.Invalid, value, why) }
	whole := func(high int64) (int64, error) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || n > high {
			return 0, bad(fmt.Sprintf("is no whole number from 0 to %d", high))
		}
		return n, nil
	}
	var n int64
	var err error
	switch name {
	case roost.AttrRequestCpus:
		cores, perr := strconv.ParseFloat(value, 64)
		if perr != nil || !(cores > 0 && cores <= 1e6) {
			return bad("is no number of cores")
		}
		p.Resources.CPU = roost.MilliCPU(math.Ceil(cores * 1000))
	case roost.AttrRequestMemory:
		n, err = whole(1 << 52)
		p.Resources.Memory = roost.Bytes(n)
	case roost.AttrRequestDisk:
		n, err = whole(1 << 52)
		p.Resources.Disk = roost.Bytes(n)
	case roost.AttrRequestGpus:
		n, err = whole(1 << 16)
		p.Resources.GPUs = int(n)
	case roost.AttrRequestGpuMem:
		n, err = whole(1 << 52)
		p.Resources.GPUMemory = roost.Bytes(n)
	case roost.AttrRequestDiskIO:
		n, err = whole(int64(roost.MaxByteRate))
		p.Resources.IO.Disk = roost.ByteRate(n)
	case roost.AttrRequestNet:
		n, err = whole(int64(roost.MaxByteRate))
		p.Resources.IO.Network = roost.ByteRate(n)
	case roost.AttrWalltime:
		n, err = whole(maxSeconds)
		p.Walltime = time.Duration(n) * time.Second
	case roost.AttrProcesses:
		n, err = whole(maxProcesses)
		p.Processes = int(n)
	case roost.AttrRequirements, roost.AttrRank:
		e, perr := classad.ParseExpr(value)
		if perr != nil {
			return fmt.Errorf("column %s: %w: %v", name, roost.Invalid, perr)
		}
		if name == roost.AttrRank {
			p.rank = e.String()
		} else {
			p.requirements = e.String()
		}
	}
	return err
}

// CheckColumns checks names and lengths.
func CheckColumns(columns []TaskColumn, count int) error {
	if len(columns) > roost.MaxColumns {
		return fmt.Errorf("%w: %d columns, and %d is the most", roost.Exhausted, len(columns), roost.MaxColumns)
	}
	seen := map[string]bool{}
	for _, c := range columns {
		switch {
		case c.Name == "" || strings.ContainsAny(c.Name, "$() \t\n"):
			return fmt.Errorf("column %q: %w: that is no name", c.Name, roost.Invalid)
		case seen[c.Name]:
			return fmt.Errorf("column %q: %w: it is there twice", c.Name, roost.Invalid)
		case len(c.Values) != count:
			return fmt.Errorf("column %q: %w: %d values for %d tasks", c.Name, roost.Invalid, len(c.Values), count)
		}
		seen[c.Name] = true
	}
	return nil
}

// maxTaskClasses bounds into how many requests a job's tasks may fall.
const maxTaskClasses = 10_000

// CheckOverrides tries every different value of the columns that override an attribute.
func CheckOverrides(p JobSpec, columns []TaskColumn) error {
	kinds := 1
	for _, c := range columns {
		if !IsOverridable(c.Name) {
			continue
		}
		seen := map[string]bool{}
		for i, v := range c.Values {
			if seen[v] {
				continue
			}
			seen[v] = true
			if err := p.OverrideAttr(c.Name, v); err != nil {
				return fmt.Errorf("task %d: %w", i, err)
			}
		}
		if kinds *= len(seen); kinds > maxTaskClasses {
			return fmt.Errorf("%w: the tasks differ in more than %d ways in what they ask of a machine",
				roost.Exhausted, maxTaskClasses)
		}
	}
	return nil
}
