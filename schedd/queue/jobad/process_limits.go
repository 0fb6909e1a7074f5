package jobad

import (
	"time"

	"github.com/roost-batch/roost"
)

// ProcessLimits are what the processes of a task may use beside walltime and memory
// (OpenPBS pbs_resources(7)); 0 is no bound.
type ProcessLimits struct {
	CPU            time.Duration // of all its processes together; so Virtual
	ProcessCPU     time.Duration // of each of them; so the next two
	Virtual        roost.Bytes   // that they address
	ProcessVirtual roost.Bytes
	ProcessMemory  roost.Bytes // that they hold
	File           roost.Bytes // of each file that it writes
	Nice           int
}

// processLimits reads what an ad says of the limits of processes.
func (r *adReader) processLimits() ProcessLimits {
	seconds := func(name string) time.Duration { return time.Duration(r.number(name, 0, 0, maxSeconds)) * time.Second }
	size := func(name string) roost.Bytes { return roost.Bytes(r.number(name, 0, 0, 1<<52)) * roost.KiB }
	return ProcessLimits{
		CPU: seconds(roost.AttrCPUTime), ProcessCPU: seconds(roost.AttrProcessCPU), Virtual: size(roost.AttrVirtual),
		ProcessVirtual: size(roost.AttrProcessVirtual), ProcessMemory: size(roost.AttrProcessMemory),
		File: size(roost.AttrFileSize),
		Nice: int(r.number(roost.AttrNice, 0, -20, 20)),
	}
}
