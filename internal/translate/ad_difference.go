package translate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// maxCompared bounds the tasks that are compared one by one.
const maxCompared = 20_000

// Differences returns the attributes in which two jobs differ for some task. What a
// schedd sets does not count, nor in what columns a job has its values.
func Differences(a, b QueuedJob) (names []string) {
	if a.Count != b.Count {
		names = append(names, roost.AttrTaskCount)
	}
	both := [2]taskForms{newTaskForms(a), newTaskForms(b)}
	all := slices.Concat(a.Ad.Names(), b.Ad.Names(), both[0].overrides(), both[1].overrides())
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		given, _ := a.Ad.Strings(roost.AttrQueueDefaults)
		if slices.Contains(unwritten, name) || slices.Contains(given, name) || name == roost.AttrPBS ||
			name == roost.AttrSlurm {
			continue
		}
		rows := 1
		if both[0].differs(name) || both[1].differs(name) {
			rows = min(a.Count, b.Count, maxCompared)
		}
		for i := range rows {
			if both[0].value(name, i) != both[1].value(name, i) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// taskForms are the values of a job's attributes for each task.
type taskForms struct {
	job    QueuedJob
	values map[string][]string
}

func newTaskForms(q QueuedJob) taskForms {
	f := taskForms{q, map[string][]string{}}
	for _, c := range q.Columns {
		f.values[c.Name] = c.Values
	}
	return f
}

func (f taskForms) overrides() (names []string) {
	for _, q := range overrideQuantities {
		if len(f.values[q.attribute]) > 0 {
			names = append(names, q.attribute)
		}
	}
	return names
}

// differs reports whether the value of an attribute can be another for each task.
func (f taskForms) differs(name string) bool {
	e, ok := f.job.Ad.Lookup(name)
	return len(f.values[name]) > 0 || ok && len(f.values) > 0 && strings.Contains(e.String(), "$(")
}

// value returns the value of an attribute for a task.
func (f taskForms) value(name string, task int) string {
	if name == roost.AttrRequestGpuMem && f.value(roost.AttrRequestGpus, task) == "0" {
		return defaultOverride(name) // memory of no GPU
	}
	if values := f.values[name]; task < len(values) {
		for _, q := range overrideQuantities {
			if q.attribute == name {
				return values[task]
			}
		}
	}
	e, ok := f.job.Ad.Lookup(name)
	if !ok {
		return defaultOverride(name)
	}
	if s, ok := f.job.Ad.Str(name); ok {
		return f.replace(s, task)
	}
	if list, ok := f.job.Ad.Strings(name); ok {
		out := make([]string, len(list))
		for i, s := range list {
			out[i] = f.replace(s, task)
		}
		if name == roost.AttrTransferIn || name == roost.AttrTransferOut || name == roost.AttrEnvironment {
			slices.Sort(out)
		}
		return strings.Join(out, "\x00")
	}
	switch unit := overrideUnit(name); {
	case unit > 0:
		n, _ := f.job.Ad.Int(name)
		return strconv.FormatInt(n*int64(unit), 10)
	case name == roost.AttrRequestCpus:
		n, _ := f.job.Ad.Real(name)
		return numberText(n)
	}
	return e.String()
}

// defaultOverride is what a column has for a job without the attribute.
func defaultOverride(name string) string {
	switch name {
	case roost.AttrRequirements:
		return "true"
	case roost.AttrRank, roost.AttrRequestGpuMem, roost.AttrRequestDiskIO, roost.AttrRequestNet:
		return "0"
	}
	return ""
}

// overrideUnit is the unit of an attribute whose column has bytes; 0: it has none.
func overrideUnit(name string) roost.Bytes {
	switch name {
	case roost.AttrRequestMemory, roost.AttrRequestGpuMem:
		return roost.MiB
	case roost.AttrRequestDisk, roost.AttrRequestDiskIO, roost.AttrRequestNet:
		return roost.KiB
	}
	return 0
}

// replace puts the values of a task into a text. It leaves what is not known before the
// job has a number.
func (f taskForms) replace(s string, task int) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			return b.String()
		}
		end := strings.IndexByte(s[i:], ')')
		b.WriteString(s[:i])
		if s[i+1] == '(' && end > 0 {
			name := s[i+2 : i+end]
			values, ok := f.values[name]
			if ok && task < len(values) {
				b.WriteString(strings.ReplaceAll(values[task], "$", "$$"))
			} else {
				b.WriteString(s[i : i+end+1])
			}
			s = s[i+end+1:]
			continue
		}
		n := min(2, len(s)-i)
		b.WriteString(s[i : i+n])
		s = s[i+n:]
	}
}
