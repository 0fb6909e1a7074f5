package submit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// usageBound is a setting that bounds what the processes of a task may use, and its
// attribute. Times are in seconds, sizes in KiB.
type usageBound struct{ name, attribute string }

// The bounds that qsub -l calls cput, pcput, vmem, pvmem, pmem and file (OpenPBS
// pbs_resources(7)). setrlimit(2) and the starter enforce them.
var (
	timeBounds = []usageBound{{"cpu_time", roost.AttrCPUTime}, {"process_cpu_time", roost.AttrProcessCPU}}
	sizeBounds = []usageBound{
		{"virtual_memory", roost.AttrVirtual}, {"process_virtual_memory", roost.AttrProcessVirtual},
		{"process_memory", roost.AttrProcessMemory},
		{"file_size", roost.AttrFileSize},
	}
)

// The range of nice(2), and a bound on the number of attempts that a job may state
// (OpenPBS, run_count).
const (
	minNice     = -20
	maxNice     = 19
	maxRunCount = math.MaxInt32
)

// readBounds reads the bounds of a task's processes other than memory and walltime.
func (b resourceReader) readBounds() {
	for _, t := range timeBounds {
		if d, _, ok := b.constantDuration(t.name, time.Second); ok {
			b.ad.SetInt(t.attribute, seconds(d))
		}
	}
	for _, s := range sizeBounds {
		b.readKiB(s)
	}
	if n, ok := b.constantInt("nice", minNice, maxNice,
		"The higher it is, the less of the processors do the task's processes get beside others, as nice(1) "+
			"has it."); ok && n != 0 {
		b.ad.SetInt(roost.AttrNice, n)
	}
	if n, ok := b.constantInt("run_count", 0, maxRunCount,
		"It says how many attempts are counted before the first one; a task that has needed too many is held."); ok {
		b.ad.SetInt(roost.AttrRunCount, n)
	}
}

func (b resourceReader) readKiB(s usageBound) {
	v, at, ok := b.constantValue(s.name)
	if !ok {
		return
	}
	bytes, err := readSize(s.name)(v)
	var w *valueError
	if errors.As(err, &w) {
		b.reportProblem(at, w.summary, w.detail)
		return
	}
	n, _ := strconv.ParseInt(bytes, 10, 64)
	if n < int64(roost.KiB) {
		b.reportProblem(at, s.name+" is too little",
			fmt.Sprintf("It is %s, and has to be 1KiB at least.", describeValue(v)))
		return
	}
	b.ad.SetInt(s.attribute, n/int64(roost.KiB))
}

// readByteRate reads a text such as "50MB/s" or "100Mbit/s"; the result is in bytes per
// second.
func readByteRate(name string) func(v cty.Value) (string, error) {
	return func(v cty.Value) (string, error) {
		hint := fmt.Sprintf("Write an amount per second: %s = \"50MB/s\" or %s = \"100Mbit/s\".", name, name)
		if v.IsNull() || v.Type() != cty.String {
			return "", &valueError{name + " is not a rate", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		text := strings.TrimSpace(v.AsString())
		if _, err := roost.ParseBytes(text); err == nil {
			return "", &valueError{name + " is an amount, not a rate",
				fmt.Sprintf("It is %s. Write %q if that is what is meant.", describeValue(v), text+"/s")}
		}
		r, err := roost.ParseByteRate(text)
		switch {
		case err != nil:
			return "", &valueError{name + " is not a rate", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		case r == 0:
			return "", &valueError{name + " is nothing",
				fmt.Sprintf("It is %s. Leave it out to ask for none.", describeValue(v))}
		}
		return strconv.FormatInt(int64(r), 10), nil
	}
}

// The values of the settings cores and numa.
const (
	wholeCores  = "whole"
	oneNUMANode = "one"
)

// maxCoreThreads is the most hardware threads of a core that any processor has.
const maxCoreThreads = 8

// readMachineOptions reads what slack a task has, and what it wants of its cores.
func (b resourceReader) readMachineOptions() {
	if slack, ok := b.constantBool("cpu_slack"); ok && !slack {
		b.ad.SetBool(roost.AttrCPUSlack, false)
	}
	if slack, ok := b.constantBool("memory_slack"); ok && slack {
		b.ad.SetBool(roost.AttrMemorySlack, true)
	}
	whole := b.readFixedText("cores", wholeCores, "each task has its physical cores to itself")
	if whole {
		b.ad.SetBool(roost.AttrWholeCores, true)
		b.checkWholeCores()
	}
	if n, ok := b.constantInt("threads_per_core", 1, maxCoreThreads,
		"It is how many hardware threads of each of its cores a task uses."); ok {
		if _, at, _ := b.constantValue("threads_per_core"); !whole {
			b.reportProblem(at, "threads_per_core without whole cores",
				"Other tasks use the other threads of the cores. Write cores = \"whole\", too.")
		}
		b.ad.SetInt(roost.AttrCoreThreads, n)
	}
	if b.readFixedText("numa", oneNUMANode, "all cores of a task are of one NUMA node") {
		b.ad.SetBool(roost.AttrOneNumaNode, true)
	}
}

// readFixedText reads a setting that has one value, and reports whether it is there.
func (b resourceReader) readFixedText(name, want, meaning string) bool {
	hint := fmt.Sprintf("Write %s = %q: %s. Leave it out otherwise.", name, want, meaning)
	s, at, ok := b.constantText(name, hint)
	if ok && s != want {
		b.reportProblem(at, fmt.Sprintf("%s has one value", name), fmt.Sprintf("It is %q. %s", truncateText(s), hint))
		return false
	}
	return ok
}

// checkWholeCores refuses whole cores for tasks that ask for parts of cores.
func (b resourceReader) checkWholeCores() {
	cores := []string{strconv.FormatFloat(quantityOf(b.ad, roost.AttrRequestCpus), 'f', -1, 64)}
	for _, c := range b.columns {
		if c.Name == roost.AttrRequestCpus {
			cores = append(cores, c.Values...)
		}
	}
	for _, text := range cores {
		if strings.Contains(text, ".") {
			_, at, _ := b.constantValue("cores")
			b.reportProblem(at, "whole cores, and a part of a core",
				fmt.Sprintf("A task asks for cpus = %s, which is no number of whole cores.", text))
			return
		}
	}
}
