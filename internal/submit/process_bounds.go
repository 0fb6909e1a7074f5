package submit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
)

// usageBound is a setting that says how much the processes of a task may use, and the
// attribute that holds it. Those of time are in seconds, and those of sizes in KiB.
type usageBound struct{ name, attribute string }

// times and sizes are what qsub -l asks for as cput, pcput, vmem, pvmem, pmem and file
// (OpenPBS pbs_resources(7)); setrlimit(2) and the starter hold them.
var (
	timeBounds = []usageBound{{"cpu_time", roost.AttrCPUTime}, {"process_cpu_time", roost.AttrProcessCPU}}
	sizeBounds = []usageBound{
		{"virtual_memory", roost.AttrVirtual}, {"process_virtual_memory", roost.AttrProcessVirtual},
		{"process_memory", roost.AttrProcessMemory},
		{"file_size", roost.AttrFileSize},
	}
)

// Of nice(2) the values that processes can have, and how many attempts a job may be said
// to have had (OpenPBS, run_count).
const (
	minNice     = -20
	maxNice     = 19
	maxRunCount = math.MaxInt32
)

// readBounds reads what the processes of a task may use beside memory and walltime.
func (b *jobBuilder) readBounds() {
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

func (b *jobBuilder) readKiB(s usageBound) {
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
