package sacct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// SlurmFields are the fields of Slurm's sacct that only rows of steps have. Of some there
// is never a value: programs ask for them and take an empty one.
func SlurmFields() []Field {
	list := []Field{
		stepNumber("NTasks", func(u *StepUsage) int64 { return u.Tasks }),
		stepText("Layout", func(u *StepUsage) string { return u.Layout }),
		measured("AveCPU", func(u *StepUsage) string { return cpuClock(u.AveCPU) }),
		measured("MinCPU", func(u *StepUsage) string { return cpuClock(u.MinCPU.Value) }),
		measured("MinCPUNode", func(u *StepUsage) string { return u.MinCPU.Node }),
		measured("MinCPUTask", func(u *StepUsage) string { return strconv.FormatInt(u.MinCPU.Task, 10) }),
		measured("AveRSS", func(u *StepUsage) string { return kib(u.AveRSS) }),
		measured("MaxRSSNode", func(u *StepUsage) string { return u.MaxRSS.Node }),
		measured("MaxRSSTask", func(u *StepUsage) string { return strconv.FormatInt(u.MaxRSS.Task, 10) }),
		measured("AveVMSize", func(u *StepUsage) string { return kib(u.AveRSS) }),
		measured("MaxVMSize", func(u *StepUsage) string { return kib(u.MaxRSS.Value) }),
		measured("MaxVMSizeNode", func(u *StepUsage) string { return u.MaxRSS.Node }),
		measured("MaxVMSizeTask", func(u *StepUsage) string { return strconv.FormatInt(u.MaxRSS.Task, 10) }),
		measured("AveDiskRead", func(u *StepUsage) string { return kib(u.Read) }),
		measured("AveDiskWrite", func(u *StepUsage) string { return kib(u.Written) }),
		measured("MaxDiskReadNode", func(u *StepUsage) string { return u.MaxRSS.Node }),
		measured("MaxDiskReadTask", zero), measured("MaxDiskWriteTask", zero),
		measured("MaxDiskWriteNode", func(u *StepUsage) string { return u.MaxRSS.Node }),
		measured("AvePages", zero), measured("MaxPages", zero), measured("MaxPagesTask", zero),
		measured("MaxPagesNode", func(u *StepUsage) string { return u.MaxRSS.Node }),
		measured("AveCPUFreq", zero), measured("ConsumedEnergy", zero), measured("ConsumedEnergyRaw", zero),
		measured("TRESUsageInTot", func(u *StepUsage) string { return usageTRES(u.AveCPU*u.Tasks, u.AveRSS*u.Tasks) }),
		measured("TRESUsageInAve", func(u *StepUsage) string { return usageTRES(u.AveCPU, u.AveRSS) }),
		measured("TRESUsageInMax", func(u *StepUsage) string { return usageTRES(u.AveCPU, u.MaxRSS.Value) }),
		measured("TRESUsageInMin", func(u *StepUsage) string { return usageTRES(u.MinCPU.Value, u.AveRSS) }),
		{"DerivedExitCode", 8, "", appendExitCode},
		{"ReqNodes", 8, "", func(_ *rowWriter, b []byte, _ *attemptRecord) []byte { return append(b, '1') }},
		{"Reserved", 10, "", func(_ *rowWriter, b []byte, r *attemptRecord) []byte {
			return appendElapsed(b, waited(r))
		}},
		{"PlannedCPU", 10, "", func(_ *rowWriter, b []byte, r *attemptRecord) []byte {
			return appendElapsed(b, product(waited(r), CPUs(r.Job.Request.CPU)))
		}},
		{"PlannedCPURAW", 13, "", func(_ *rowWriter, b []byte, r *attemptRecord) []byte {
			return strconv.AppendInt(b, product(waited(r), CPUs(r.Job.Request.CPU)), 10)
		}},
		{"DBIndex", 10, "", func(w *rowWriter, b []byte, r *attemptRecord) []byte {
			return strconv.AppendUint(b, r.Job.Seq, 10)
		}},
	}
	for _, name := range strings.Fields("AdminComment AssocID BlockID Comment Constraints Container Extra FailedNode " +
		"Flags Licenses McsLabel Priority QOSRAW QOSREQ ReqCPUFreq ReqCPUFreqGov ReqCPUFreqMax ReqCPUFreqMin " +
		"Reservation ReservationId SegmentSize StdErr StdIn StdOut SystemComment TRESUsageInMaxNode " +
		"TRESUsageInMaxTask TRESUsageInMinNode TRESUsageInMinTask TRESUsageOutAve TRESUsageOutMax " +
		"TRESUsageOutMaxNode TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask " +
		"TRESUsageOutTot WCKey WCKeyID") {
		list = append(list, Field{name, max(len(name), 10), "", func(_ *rowWriter, b []byte, _ *attemptRecord) []byte {
			return b
		}})
	}
	return list
}

// SlurmFieldList returns the names of all fields in four columns, as sacct --helpformat
// of Slurm prints them.
func SlurmFieldList() string {
	var names []string
	for _, f := range slices.Concat(Fields(), SlurmFields()) {
		names = append(names, f.Name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, "%-19s", name)
		if i%4 == 3 {
			b.WriteByte('\n')
		}
	}
	return strings.TrimRight(b.String(), " \n") + "\n"
}

func zero(*StepUsage) string { return "0" }

func kib(n int64) string { return string(appendKiB(nil, roost.Bytes(n))) }

// cpuClock is milliseconds as HH:MM:SS, with days before where there are some.
func cpuClock(millis int64) string { return string(appendElapsed(nil, millis/1000)) }

func usageTRES(cpu, memory int64) string { return "cpu=" + cpuClock(cpu) + ",mem=" + kib(memory) }

func stepText(name string, value func(*StepUsage) string) Field {
	return Field{name, max(len(name), 10), "", func(w *rowWriter, b []byte, _ *attemptRecord) []byte {
		if w.part.Usage == nil {
			return b
		}
		return w.names.Append(b, value(w.part.Usage), w.most)
	}}
}

func stepNumber(name string, value func(*StepUsage) int64) Field {
	return stepText(name, func(u *StepUsage) string { return strconv.FormatInt(value(u), 10) })
}

// measured is a value that is known once the step has been measured.
func measured(name string, value func(*StepUsage) string) Field {
	return stepText(name, func(u *StepUsage) string {
		if !u.IsMeasured {
			return ""
		}
		return value(u)
	})
}
