package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/records"
)

func sstatCommand() *frame.Command {
	return &frame.Command{
		Name: "sstat", Group: frame.GroupSlurm, Summary: "show what running jobs use as Slurm does", RawArgs: true,
		MaxOperands: -1, Run: runSstat,
		Synopsis: "-j IDS [-a] [-n] [-p | -P] [-o FIELDS]",
		Description: "Lists what running jobs have used, in the form of sstat of Slurm. The running steps of a job " +
			"are measured together. roost top says more.",
		Examples: []frame.Example{
			{Line: "sstat -j 12", Description: "all that is known of a job"},
			{Line: "sstat -j 12 -P -o MaxRSS,AveCPU", Description: "for a program"},
		},
	}
}

// sstatFields are the fields of sstat in the order of its standard format.
func sstatFields() []fieldColumn {
	var list []fieldColumn
	for _, name := range strings.Fields("JobID MaxVMSize MaxVMSizeNode MaxVMSizeTask AveVMSize MaxRSS MaxRSSNode " +
		"MaxRSSTask AveRSS MaxPages MaxPagesNode MaxPagesTask AvePages MinCPU MinCPUNode MinCPUTask AveCPU NTasks " +
		"AveCPUFreq ReqCPUFreqMin ReqCPUFreqMax ReqCPUFreqGov ConsumedEnergy MaxDiskRead MaxDiskReadNode " +
		"MaxDiskReadTask AveDiskRead MaxDiskWrite MaxDiskWriteNode MaxDiskWriteTask AveDiskWrite TRESUsageInAve " +
		"TRESUsageInMax TRESUsageInMaxNode TRESUsageInMaxTask TRESUsageInMin TRESUsageInMinNode TRESUsageInMinTask " +
		"TRESUsageInTot TRESUsageOutAve TRESUsageOutMax TRESUsageOutMaxNode TRESUsageOutMaxTask TRESUsageOutMin " +
		"TRESUsageOutMinNode TRESUsageOutMinTask TRESUsageOutTot Nodelist Pids") {
		list = append(list, fieldColumn{name, max(len(name), 10), false})
	}
	return list
}

func runSstat(c *frame.Invocation) error {
	required := getopt.Required
	given, operands, answered, err := parseOptions(c, append(printOptions(),
		getopt.Option{Name: "allsteps", Letter: 'a'},
		getopt.Option{Name: "jobs", Letter: 'j', Argument: required},
		getopt.Option{Name: "format", Letter: 'o', Argument: required}, getopt.Option{Name: "fields", As: "format",
			Argument: required}, getopt.Option{Name: "helpformat", Letter: 'e'}, getopt.Option{Name: "noconvert"},
		getopt.Option{Name: "pidformat", Letter: 'i'}, getopt.Option{Name: "verbose", Letter: 'v'}))
	if err != nil || answered {
		return err
	}
	var names []string
	for _, f := range sstatFields() {
		names = append(names, f.title)
	}
	if has(given, "helpformat") {
		fmt.Fprintln(c.Stdout, strings.Join(names, " "))
		return nil
	}
	ids, _ := getopt.Last(given, "jobs")
	if ids = cmp.Or(ids, strings.Join(operands, ",")); ids == "" {
		return fail(c, "You didn't give me any jobs to stat.")
	}
	format, _ := getopt.Last(given, "format")
	t := &fieldTable{}
	t.setForm(given)
	if unknown := t.choose(cmp.Or(format, strings.Join(names, ",")), sstatFields()); unknown != "" {
		return fail(c, fmt.Sprintf("Invalid field requested: %q", unknown))
	}
	q := &jobQuery{ads: true}
	for _, text := range splitIDs(ids) {
		id, ok := parseJobID(text)
		if !ok {
			return fail(c, "Invalid job id: "+text)
		}
		q.ids = append(q.ids, id)
	}
	jobs, err := q.find(c)
	if err != nil {
		return failWith(c, err)
	}
	var rows []map[string]string
	for _, j := range jobs {
		if j.State == "RUNNING" || j.State == "SUSPENDED" || j.State == "COMPLETING" {
			rows = append(rows, stepRows(j, wantedSteps(q.ids, j), has(given, "allsteps"))...)
		}
	}
	if len(rows) == 0 {
		return fail(c, "no steps running for job "+ids)
	}
	t.print(c.Stdout, rows)
	return nil
}

// stepRows are the running steps of a job that are asked for. Where none is named, that
// is the newest one.
func stepRows(j *records.Job, wanted []string, all bool) (rows []map[string]string) {
	steps := slices.DeleteFunc(j.Steps(), func(s *records.Step) bool { return !s.IsRunning() })
	for i, s := range steps {
		switch {
		case len(wanted) > 0 && !slices.Contains(wanted, s.StepName):
			continue
		case len(wanted) == 0 && !all && i < len(steps)-1:
			continue
		}
		row := usageRow(j)
		row["JobID"], row["NTasks"], row["Nodelist"] = j.RawID()+"."+s.StepName, fmt.Sprint(s.Tasks()), s.NodeList()
		rows = append(rows, row)
	}
	return rows
}

// usageRow is what a job has used. Its running steps are not measured one by one.
func usageRow(j *records.Job) map[string]string {
	u := j.GetUsage()
	kilobytes := func(n int64) string { return fmt.Sprintf("%dK", n>>10) }
	cpu := time.Duration(u.GetUserCpu() + u.GetSystemCpu()).Truncate(time.Second)
	used := fmt.Sprintf("%02d:%02d:%02d", int(cpu.Hours()), int(cpu.Minutes())%60, int(cpu.Seconds())%60)
	node := ""
	if hosts := j.Hosts(); len(hosts) > 0 {
		node = hosts[0]
	}
	peak := kilobytes(max(u.GetPeakMemory(), u.GetMemory()))
	read, written := kilobytes(u.GetReadBytes()), kilobytes(u.GetWriteBytes())
	return map[string]string{"JobID": j.RawID() + ".batch", "MaxVMSize": peak, "MaxVMSizeNode": node,
		"MaxVMSizeTask": "0", "AveVMSize": kilobytes(u.GetMemory()), "MaxRSS": peak, "MaxRSSNode": node,
		"MaxRSSTask": "0", "AveRSS": kilobytes(u.GetMemory()), "MaxPages": "0",
		"MaxPagesNode": node, "MaxPagesTask": "0",
		"AvePages": "0", "MinCPU": used, "MinCPUNode": node, "MinCPUTask": "0", "AveCPU": used,
		"NTasks":     fmt.Sprint(j.Tasks()),
		"AveCPUFreq": "0", "ReqCPUFreqMin": "0", "ReqCPUFreqMax": "0", "ReqCPUFreqGov": "0", "ConsumedEnergy": "0",
		"MaxDiskRead": read, "MaxDiskReadNode": node, "MaxDiskReadTask": "0", "AveDiskRead": read,
		"MaxDiskWrite": written, "MaxDiskWriteNode": node, "MaxDiskWriteTask": "0", "AveDiskWrite": written,
		"TRESUsageInAve": "cpu=" + used + ",mem=" + peak, "TRESUsageInMax": "cpu=" + used + ",mem=" + peak,
		"Nodelist": j.NodeList()}
}
