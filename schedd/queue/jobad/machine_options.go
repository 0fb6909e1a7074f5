package jobad

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// machineOptions are what a job wants of its machine beside amounts of resources. They
// are slack, and which cores its tasks run on.
type machineOptions struct {
	noCPUSlack  bool // its tasks never get more CPU time than they ask for
	memorySlack bool // its tasks may use memory beyond their request while nobody needs it
	wholeCores  bool // its tasks have their physical cores alone
	coreThreads int  // CPUs that a task uses of each physical core; 0: all
	oneNUMANode bool // all CPUs of a task are of one NUMA node
}

// maxCoreThreads is the most hardware threads of a core that any processor has.
const maxCoreThreads = 8

// machineOptions reads them, and refuses those that contradict the rest of the job.
func (r *adReader) machineOptions(p *JobSpec) machineOptions {
	w := machineOptions{
		noCPUSlack:  !r.boolean(roost.AttrCPUSlack, true),
		memorySlack: r.boolean(roost.AttrMemorySlack, false),
		wholeCores:  r.boolean(roost.AttrWholeCores, false),
		coreThreads: int(r.number(roost.AttrCoreThreads, 0, 1, maxCoreThreads)),
		oneNUMANode: r.boolean(roost.AttrOneNumaNode, false),
	}
	switch {
	case w.memorySlack && p.Band.IsProd():
		r.fail(roost.AttrMemorySlack, fmt.Sprintf("a task in band %v has exactly the memory that it asks for: one "+
			"that uses more would be the first to leave", p.Band))
	case w.coreThreads > 0 && !w.wholeCores:
		r.fail(roost.AttrCoreThreads, "it is for tasks that have whole cores ("+roost.AttrWholeCores+")")
	case w.wholeCores && p.Resources.CPU%1000 != 0:
		r.fail(roost.AttrWholeCores, fmt.Sprintf("a task of %v cpus has no whole cores", p.Resources.CPU))
	}
	return w
}

// readMachineOptions reads what a task asks for beside CPU, memory and disk.
func (r *adReader) readMachineOptions(p *JobSpec) {
	p.Resources.GPUs, p.Resources.GPUMemory = r.gpus()
	p.machineOptions, p.Resources.IO = r.machineOptions(p), r.ioRates()
}

// ioRates reads the rates that a task asks for.
func (r *adReader) ioRates() roost.IORates {
	return roost.IORates{Disk: r.byteRate(roost.AttrRequestDiskIO), Network: r.byteRate(roost.AttrRequestNet)}
}

// byteRate reads a rate, which ads have in KiB per second.
func (r *adReader) byteRate(name string) roost.ByteRate {
	return roost.ByteRate(r.number(name, 0, 0, int64(roost.MaxByteRate)/int64(roost.KiB))) * roost.ByteRate(roost.KiB)
}

// machineKey tells the requests of jobs apart that want different things of machines.
func (p *JobSpec) machineKey() string {
	if p.machineOptions == (machineOptions{}) && p.Resources.IO == (roost.IORates{}) {
		return ""
	}
	return fmt.Sprintf(" machine %v %d %d ", p.machineOptions, p.Resources.IO.Disk, p.Resources.IO.Network)
}

// describeMachineOptions writes them into the ad of a request.
func (p *JobSpec) describeMachineOptions(ad *classad.Ad) {
	gpu.DescribeIORates(ad, p.Resources.IO, p.Resources.IO, roost.AttrRequestDiskIO, roost.AttrRequestNet)
	w := p.machineOptions
	if w.noCPUSlack {
		ad.SetBool(roost.AttrCPUSlack, false)
	}
	for _, one := range []struct {
		wanted bool
		name   string
	}{
		{w.memorySlack, roost.AttrMemorySlack}, {w.wholeCores, roost.AttrWholeCores},
		{w.oneNUMANode, roost.AttrOneNumaNode},
	} {
		if one.wanted {
			ad.SetBool(one.name, true)
		}
	}
	if w.coreThreads > 0 {
		ad.SetInt(roost.AttrCoreThreads, int64(w.coreThreads))
	}
}

// requiredHardware returns what a machine must have for the wishes, as a part of the
// requirements.
func (w machineOptions) requiredHardware() (require string) {
	if w.noCPUSlack {
		require += enforces("cpu")
	}
	if w.wholeCores {
		require += enforces("cpuset") + " && TARGET." + roost.AttrPhysicalCores + " * TARGET." +
			roost.AttrThreadsPerCore + " >= MY." + roost.AttrRequestCpus + " && int(MY." +
			roost.AttrRequestCpus + ") % TARGET." + roost.AttrThreadsPerCore + " == 0"
	}
	if w.oneNUMANode {
		if !w.wholeCores {
			require += enforces("cpuset")
		}
		require += " && TARGET." + roost.AttrNumaNodeCpus + " >= MY." + roost.AttrRequestCpus
	}
	return require
}

// enforces requires a machine that enforces one kind of limit.
func enforces(limit string) string {
	return fmt.Sprintf(" && member(%q, TARGET.%s)", limit, roost.AttrEnforces)
}
