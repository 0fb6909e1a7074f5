package submit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

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
