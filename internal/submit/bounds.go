package submit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
)

// bound is a setting that says how much the processes of a task may use, and the attribute that holds it. Those of time are in seconds, and those of sizes in KiB.
type bound struct{ name, attr string }

// times and sizes are what qsub -l asks for as cput, pcput, vmem, pvmem, pmem and file (OpenPBS pbs_resources(7)); setrlimit(2) and the starter hold them.
var (
	times = []bound{{"cpu_time", roost.AttrCPUTime}, {"process_cpu_time", roost.AttrProcessCPU}}
	sizes = []bound{
		{"virtual_memory", roost.AttrVirtual}, {"process_virtual_memory", roost.AttrProcessVirtual}, {"process_memory", roost.AttrProcessMemory},
		{"file_size", roost.AttrFileSize},
	}
)

// Of nice(2) the values that processes can have, and how many attempts a job may be said to have had (OpenPBS, run_count).
const (
	leastNice   = -20
	mostNice    = 19
	maxRunCount = math.MaxInt32
)

// readBounds reads what the processes of a task may use beside memory and walltime.
func (b *builder) readBounds() {
	for _, t := range times {
		if d, _, ok := b.sameLength(t.name, time.Second); ok {
			b.ad.SetInt(t.attr, seconds(d))
		}
	}
	for _, s := range sizes {
		b.readKiB(s)
	}
	if n, ok := b.sameInt("nice", leastNice, mostNice, "The higher it is, the less of the processors do the task's processes get beside others, as nice(1) has it."); ok && n != 0 {
		b.ad.SetInt(roost.AttrNice, n)
	}
	if n, ok := b.sameInt("run_count", 0, maxRunCount, "It says how many attempts are counted before the first one; a task that has needed too many is held."); ok {
		b.ad.SetInt(roost.AttrRunCount, n)
	}
}

func (b *builder) readKiB(s bound) {
	v, at, ok := b.same(s.name)
	if !ok {
		return
	}
	bytes, err := readSize(s.name)(v)
	var w *wrong
	if errors.As(err, &w) {
		b.fail(at, w.summary, w.detail)
		return
	}
	n, _ := strconv.ParseInt(bytes, 10, 64)
	if n < int64(roost.KiB) {
		b.fail(at, s.name+" is too little", fmt.Sprintf("It is %s, and has to be 1KiB at least.", describe(v)))
		return
	}
	b.ad.SetInt(s.attr, n/int64(roost.KiB))
}
