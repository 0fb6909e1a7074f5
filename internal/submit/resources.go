package submit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// resourceQuantity is a resource of a task: how it is written, and how an ad and a column
// hold it. Values are texts in the column's unit: cores, bytes, pieces, seconds.
type resourceQuantity struct {
	name      string // of the setting
	attribute string // of the ad and of the column
	parse     func(v cty.Value) (string, error)
	set       func(b *jobBuilder, value string)
}

func quantities() []resourceQuantity {
	return []resourceQuantity{
		{"cpus", roost.AttrRequestCpus, readCores, func(b *jobBuilder, v string) { b.resourceReader().setCores(v) }},
		{"memory", roost.AttrRequestMemory, readSize("memory"), func(b *jobBuilder, v string) {
			b.resourceReader().setSize(roost.AttrRequestMemory, v, roost.MiB)
		}},
		{"disk", roost.AttrRequestDisk, readSize("disk"), func(b *jobBuilder, v string) {
			b.resourceReader().setSize(roost.AttrRequestDisk, v, roost.KiB)
		}},
		{"disk_io", roost.AttrRequestDiskIO, readByteRate("disk_io"), func(b *jobBuilder, v string) {
			b.resourceReader().setSize(roost.AttrRequestDiskIO, v, roost.KiB)
		}},
		{"network", roost.AttrRequestNet, readByteRate("network"), func(b *jobBuilder, v string) {
			b.resourceReader().setSize(roost.AttrRequestNet, v, roost.KiB)
		}},
		{"gpus", roost.AttrRequestGpus, readGpus, func(b *jobBuilder, v string) {
			b.resourceReader().setWhole(roost.AttrRequestGpus, v)
		}},
		{"gpu_memory", roost.AttrRequestGpuMem, readSize("gpu_memory"), func(b *jobBuilder, v string) {
			b.resourceReader().setSize(roost.AttrRequestGpuMem, v, roost.MiB)
		}},
		{"processes", roost.AttrProcesses, readProcesses, func(b *jobBuilder, v string) {
			b.resourceReader().setWhole(roost.AttrProcesses, v)
		}},
		{"walltime", roost.AttrWalltime, readWalltime, func(b *jobBuilder, v string) {
			b.resourceReader().setWhole(roost.AttrWalltime, v)
		}},
	}
}

// valueError is a mistake in a value, found by a reader that does not know the place of
// the value.
type valueError struct{ summary, detail string }

func (w *valueError) Error() string { return w.summary + ". " + w.detail }

// readResources reads the quantities; unset ones get their defaults.
func (b resourceReader) readResources() {
	d := b.parser.options.Defaults
	b.setCores(strconv.FormatFloat(d.CPU.Cores(), 'f', -1, 64))
	b.setSize(roost.AttrRequestMemory, strconv.FormatInt(int64(d.Memory), 10), roost.MiB)
	b.setSize(roost.AttrRequestDisk, strconv.FormatInt(int64(d.Disk), 10), roost.KiB)
	b.ad.SetInt(roost.AttrRequestGpus, 0)
	b.ad.SetInt(roost.AttrWalltime, 0)
	for _, q := range quantities() {
		a, ok := b.attribute(q.name, b.taskReader().taskRoots()...)
		if !ok {
			continue
		}
		if values, ok := b.readQuantity(q, a.Expr); ok {
			q.set(b.jobBuilder, values[0])
			if len(values) > 1 {
				b.taskReader().overrideColumn(q.attribute, values)
			}
		}
	}
	b.resolveGPUs()
}

// readQuantity reads a value that may differ between tasks: one text if it does not,
// otherwise one for each task.
func (b resourceReader) readQuantity(q resourceQuantity, expr hclsyntax.Expression) ([]string, bool) {
	one := func(v cty.Value) (string, bool) {
		s, err := q.parse(v)
		var w *valueError
		if errors.As(err, &w) {
			b.reportProblem(expr.Range(), w.summary, w.detail)
		}
		return s, err == nil
	}
	if !b.parser.isPerTask(expr) {
		v, ok := b.parser.evaluate(expr, b.parser.root)
		if !ok || v.IsNull() {
			return nil, false
		}
		s, ok := one(v)
		return []string{s}, ok
	}
	values := make([]string, 0, b.tasks.count)
	ok := b.taskReader().forEachTask(expr, func(i int, v cty.Value) bool {
		before := len(b.parser.diags)
		s, ok := one(v)
		if !ok && len(b.parser.diags) > before {
			b.parser.diags[before].Detail += fmt.Sprintf(" This is so for %s.", b.taskReader().label(i))
		}
		values = append(values, s)
		return ok
	})
	return values, ok
}

func (b resourceReader) setCores(cores string) {
	f, _ := strconv.ParseFloat(cores, 64)
	if n := int64(f); float64(n) == f {
		b.ad.SetInt(roost.AttrRequestCpus, n)
		return
	}
	b.ad.SetReal(roost.AttrRequestCpus, f)
}

// setSize sets a number of bytes in the unit of the ad, rounded up.
func (b resourceReader) setSize(attr, bytes string, unit roost.Bytes) {
	n, _ := strconv.ParseInt(bytes, 10, 64)
	units := n / int64(unit)
	if n%int64(unit) > 0 {
		units++
	}
	b.ad.SetInt(attr, units)
}

func (b resourceReader) setWhole(attr, value string) {
	n, _ := strconv.ParseInt(value, 10, 64)
	b.ad.SetInt(attr, n)
}

// maxCores bounds the cores of one task.
const maxCores = 1 << 16

// readCores reads a number of cores such as 2, 0.5, "0.5" or "500m".
func readCores(v cty.Value) (string, error) {
	const hint = "Write a number of cores, of which parts are allowed: cpus = 2, cpus = 0.5 or cpus = \"500m\"."
	var cores float64
	switch {
	case v.IsNull():
		return "", &valueError{"cpus is null", hint}
	case v.Type() == cty.Number:
		cores, _ = v.AsBigFloat().Float64()
	case v.Type() == cty.String:
		s, milli := strings.CutSuffix(strings.TrimSpace(v.AsString()), "m")
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			if _, err := roost.ParseBytes(v.AsString()); err == nil {
				return "", &valueError{"cpus is a number of cores, not a size",
					fmt.Sprintf("It is %s. %s A size belongs to memory or disk.", describeValue(v), hint)}
			}
			return "", &valueError{"cpus is not a number of cores", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		if cores = f; milli {
			cores /= 1000
		}
	default:
		return "", &valueError{"cpus is not a number of cores", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
	}
	switch {
	case cores < 0:
		return "", &valueError{"cpus is negative", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
	case !(cores >= 0.001):
		return "", &valueError{"cpus is less than a thousandth of a core",
			fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
	case cores > maxCores:
		return "", &valueError{"cpus is more than any machine has",
			fmt.Sprintf("It is %s, and a task can ask for at most %d. %s", describeValue(v), maxCores, hint)}
	}
	return strconv.FormatFloat(float64(int64(cores*1000+0.5))/1000, 'f', -1, 64), nil
}

// readSize reads a text with a unit; the result is in bytes.
func readSize(name string) func(v cty.Value) (string, error) {
	return func(v cty.Value) (string, error) {
		hint := fmt.Sprintf("Write a number and a unit: %s = \"4GiB\" (K, M, G, T and P are powers of 1024).", name)
		if !v.IsNull() && v.Type() == cty.Number {
			if v.AsBigFloat().Sign() < 0 {
				return "", &valueError{name + " is negative", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
			}
			return "", &valueError{name + " has no unit",
				fmt.Sprintf("It is %s, which could be bytes or gigabytes. Write %q if that is what is meant.",
					describeValue(v), guessUnit(numberText(v)))}
		}
		if v.IsNull() || v.Type() != cty.String {
			return "", &valueError{name + " is not a size", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		s := strings.TrimSpace(v.AsString())
		if strings.HasPrefix(s, "-") {
			return "", &valueError{name + " is negative", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		if _, err := strconv.ParseFloat(s, 64); err == nil {
			return "", &valueError{name + " has no unit",
				fmt.Sprintf("It is %s, which could be bytes or gigabytes. Write %q if that is what is meant.",
					describeValue(v), guessUnit(s))}
		}
		n, err := roost.ParseBytes(s)
		if err != nil {
			return "", &valueError{name + " is not a size", capitalized(err) + "."}
		}
		if n == 0 {
			return "", &valueError{name + " is nothing", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		return strconv.FormatInt(int64(n), 10), nil
	}
}

// guessUnit adds the unit that was probably meant: requests of thousands of GiB are rare.
func guessUnit(number string) string {
	if f, err := strconv.ParseFloat(number, 64); err == nil && f >= 1024 {
		return truncateText(number) + "MiB"
	}
	return truncateText(number) + "GiB"
}

func readGpus(v cty.Value) (string, error) {
	const hint = "Write how many: gpus = 1."
	if v.IsNull() || v.Type() != cty.Number {
		return "", &valueError{"gpus has to be a number", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
	}
	f := v.AsBigFloat()
	n, _ := f.Int64()
	if !f.IsInt() || n < 0 || n > 1024 {
		return "", &valueError{"gpus is not a number of devices",
			fmt.Sprintf("It is %s, and can be a whole number from 0 to 1024. %s", describeValue(v), hint)}
	}
	return strconv.FormatInt(n, 10), nil
}

// maxProcesses bounds the lines of one task in the node file.
const maxProcesses = 1 << 16

func readProcesses(v cty.Value) (string, error) {
	const hint = "Write how many lines of the file of nodes each task has."
	if v.IsNull() || v.Type() != cty.Number {
		return "", &valueError{"processes has to be a number", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
	}
	f := v.AsBigFloat()
	n, _ := f.Int64()
	if !f.IsInt() || n < 0 || n > maxProcesses {
		return "", &valueError{"processes is out of range",
			fmt.Sprintf("It is %s, and can be a whole number from 0 to %d. %s", describeValue(v), maxProcesses, hint)}
	}
	return strconv.FormatInt(n, 10), nil
}

// maxDuration bounds walltime and other durations: ten years.
const maxDuration = 10 * 366 * 24 * time.Hour

// readDuration reads a duration written as a text.
func readDuration(name string, v cty.Value) (time.Duration, error) {
	hint := fmt.Sprintf("Write a length of time with units: %s = \"90s\", \"1h30m\", \"2d\" or \"01:30:00\".", name)
	if !v.IsNull() && v.Type() == cty.Number {
		n := numberText(v)
		if v.AsBigFloat().Sign() < 0 {
			return 0, &valueError{name + " is negative", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		return 0, &valueError{name + " has no unit",
			fmt.Sprintf("It is %s, which could be seconds, minutes or hours. Write %q if that is what is meant.",
				describeValue(v), truncateText(n)+"s")}
	}
	if v.IsNull() || v.Type() != cty.String {
		return 0, &valueError{name + " is not a length of time", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
	}
	if strings.HasPrefix(strings.TrimSpace(v.AsString()), "-") {
		return 0, &valueError{name + " is negative", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
	}
	d, err := roost.ParseDuration(v.AsString())
	if err != nil {
		return 0, &valueError{name + " is not a length of time", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
	}
	if d > maxDuration {
		return 0, &valueError{name + " is too long",
			fmt.Sprintf("It is %s, and can be ten years at most.", describeValue(v))}
	}
	return d, nil
}

func readWalltime(v cty.Value) (string, error) {
	d, err := readDuration("walltime", v)
	if err != nil {
		return "", err
	}
	if d < time.Second {
		return "", &valueError{"walltime is less than a second",
			fmt.Sprintf("It is %s. Leave it out for no limit.", describeValue(v))}
	}
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10), nil
}

// constantDuration reads a duration that is equal for all tasks.
func (b resourceReader) constantDuration(name string, least time.Duration) (time.Duration, hcl.Range, bool) {
	v, at, ok := b.constantValue(name)
	if !ok {
		return 0, at, false
	}
	d, err := readDuration(name, v)
	var w *valueError
	if errors.As(err, &w) {
		b.reportProblem(at, w.summary, w.detail)
		return 0, at, false
	}
	if d < least {
		b.reportProblem(at, name+" is too short",
			fmt.Sprintf("It is %s, and has to be at least %v.", describeValue(v), least))
		return 0, at, false
	}
	return d, at, true
}
