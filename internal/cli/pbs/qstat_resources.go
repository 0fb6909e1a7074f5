package pbs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/pbs/qsub"
)

// used are the resources that a job has used up to now, or in all.
func (j *pbsJob) used() []qstat.ObjectAttribute {
	if j.GetStarted() == 0 || j.GetArray() && !isSubjob(j.JobStatus) {
		return nil
	}
	var cpu, wall time.Duration
	var memory roost.Bytes
	known := true
	if e := j.GetExit(); e != nil {
		cpu, wall, memory = time.Duration(e.GetUserCpu()+e.GetSystemCpu()), time.Duration(e.GetWall()),
			jobs.PeakMemory(e)
	} else if document.IsFinal(j.JobStatus) {
		return nil
	} else {
		u := j.GetUsage()
		cpu, wall, memory, known = time.Duration(u.GetUserCpu()+u.GetSystemCpu()),
			j.Now().Sub(document.TimeOfNanos(j.GetStarted())), roost.Bytes(u.GetPeakMemory()), u != nil
	}
	var list []qstat.ObjectAttribute
	add := func(name, value string) {
		list = append(list, qstat.ObjectAttribute{Name: "resources_used", Resource: name, Value: value})
	}
	if known {
		percent := int64(0)
		if wall > 0 {
			percent = int64(cpu * 100 / wall)
		}
		add("cpupercent", fmt.Sprint(percent))
		add("cput", pbsframe.ClockText(cpu))
		add("mem", kilobytes(memory))
	}
	add("ncpus", j.cpus())
	if known {
		add("vmem", kilobytes(memory)) // what has to be kept somewhere, in memory or on a swap device
	}
	add("walltime", pbsframe.ClockText(wall))
	return list
}

// cpus is a whole number of processors, as PBS knows no parts of them.
func (j *pbsJob) cpus() string {
	return fmt.Sprint(max((j.GetRequest().GetMilliCpu()+999)/1000, 1))
}

// resources are what a job asks for, in PBS's spelling, or what it got where it asked for
// nothing.
func (j *pbsJob) resources() []qstat.ObjectAttribute {
	amounts := map[string]string{}
	if stated, ok := j.record.Sub("Resource_List"); ok {
		for _, name := range stated.Names() {
			if text, ok := stated.Str(name); ok && text != "" {
				amounts[name] = qsub.CanonicalValue(name, text)
			}
		}
	}
	if len(j.GetReleased()) > 0 {
		j.dropReleased(amounts)
	}
	have := func(name, value string) {
		if amounts[name] == "" {
			amounts[name] = value
		}
	}
	r := j.GetRequest().Vector()
	have("mem", pbsSize((r.Memory+roost.MiB-1)/roost.MiB*roost.MiB))
	if qsub.RequestsNoCPU(amounts["select"]) {
		have("ncpus", "0")
	}
	have("ncpus", j.cpus())
	have("nodect", "1")
	if n, stated := qsub.ProcessCount(amounts["select"]); stated {
		have("mpiprocs", fmt.Sprint(n))
	}
	if r.GPUs > 0 {
		have("ngpus", fmt.Sprint(r.GPUs))
	}
	if r.GPUMemory > 0 {
		have("gpu_mem", fmt.Sprintf("%dmb", (r.GPUMemory+roost.MiB-1)/roost.MiB))
	}
	if seconds, ok := j.ad.Int(roost.AttrWalltime); ok && seconds > 0 {
		amounts["walltime"] = pbsframe.ClockText(time.Duration(seconds) * time.Second)
	}
	for _, b := range []struct {
		name, attribute string
		text            func(int64) string
	}{{"cput", roost.AttrCPUTime, seconds}, {"pcput", roost.AttrProcessCPU, seconds},
		{"vmem", roost.AttrVirtual, kibibytes}, {"pvmem", roost.AttrProcessVirtual, kibibytes},
		{"pmem", roost.AttrProcessMemory, kibibytes}, {"file", roost.AttrFileSize, kibibytes}} {
		if n, ok := j.ad.Int(b.attribute); ok && n > 0 {
			have(b.name, b.text(n))
		}
	}
	if text, ok := j.ad.Str(roost.AttrLimits); ok {
		taken, _ := roost.ParseLimitRequests(text)
		for _, l := range taken {
			have(l.Name, fmt.Sprint(l.Count))
		}
	}
	list := make([]qstat.ObjectAttribute, 0, len(amounts))
	for name, value := range amounts {
		list = append(list, qstat.ObjectAttribute{Name: "Resource_List", Resource: name, Value: value})
	}
	slices.SortFunc(list, func(a, b qstat.ObjectAttribute) int { return strings.Compare(a.Resource, b.Resource) })
	return list
}

// dropReleased removes from a job's request what it has given back since it started.
func (j *pbsJob) dropReleased(amounts map[string]string) {
	var rest []string
	for n, chunk := range qsub.ExpandSelect(amounts["select"]) {
		if !slices.Contains(j.GetReleased(), uint32(n)) {
			rest = append(rest, chunk)
		}
	}
	if len(rest) > 0 {
		amounts["select"], amounts["nodect"] = qsub.JoinSelect(rest), fmt.Sprint(len(rest))
	}
	for _, name := range []string{"ncpus", "mem", "ngpus", "mpiprocs"} { // the sums of what it has follow
		delete(amounts, name)
	}
}

func seconds(n int64) string { return pbsframe.ClockText(time.Duration(n) * time.Second) }

func kibibytes(n int64) string { return pbsSize(roost.Bytes(n) * roost.KiB) }
