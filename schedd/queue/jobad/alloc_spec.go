package jobad

import (
	"fmt"
	"math"
	"strings"

	"github.com/roost-batch/roost"
)

// AllocPlace says inside which alloc set the tasks of a job run. An alloc set is a job
// whose tasks hold resources, and run nothing. The zero value is for a job inside none.
type AllocPlace struct {
	Alloc    uint64 // the number of the alloc set; 0: none
	Anywhere bool   // inside any alloc of the set that has room; else each inside that of its own index
}

// allocPlace reads inside which alloc set the tasks run.
func (r *adReader) allocPlace() (p AllocPlace) {
	if !r.has(roost.AttrInAlloc) {
		return p
	}
	text := r.text(roost.AttrInAlloc, "")
	id, err := roost.ParseJobID(text, "here")
	if strings.HasPrefix(text, "@") { // an earlier job of the submission: the queue puts its id there
		id.Seq, err = math.MaxUint64, nil
	}
	if err != nil || id.Seq == 0 {
		r.fail(roost.AttrInAlloc, fmt.Sprintf("%q is not the id of an alloc set", text))
		return p
	}
	p.Alloc = id.Seq
	switch place := r.text(roost.AttrAllocPlace, roost.PlaceByIndex); place {
	case roost.PlaceByIndex:
	case roost.PlaceAnywhere:
		p.Anywhere = true
	default:
		r.fail(roost.AttrAllocPlace, fmt.Sprintf("%q is none of %s, %s", place, roost.PlaceByIndex,
			roost.PlaceAnywhere))
	}
	return p
}

// allocUsers reads whose jobs may be inside an alloc set besides its owner's.
func (r *adReader) allocUsers() []string {
	names := r.list(roost.AttrAllocUsers)
	if len(names) > roost.MaxAllocUsers {
		r.fail(roost.AttrAllocUsers, fmt.Sprintf("it names %d users, and %d are the most", len(names),
			roost.MaxAllocUsers))
		return nil
	}
	for _, name := range names {
		if err := roost.CheckAllocUser(name); err != nil {
			r.fail(roost.AttrAllocUsers, err.Error())
			return nil
		}
	}
	return names
}

// refuseWithAlloc refuses what contradicts an alloc set, or a job inside one.
func (r *adReader) refuseWithAlloc(p *JobSpec) {
	const nothing, placed = "an alloc set runs nothing by itself", "its tasks run on the machine of their alloc: " +
		"it belongs to the alloc set"
	switch {
	case len(p.AllocUsers) > 0 && !p.IsAlloc:
		r.fail(roost.AttrAllocUsers, "only an alloc set has users")
	case p.IsAlloc && p.Inside.Alloc != 0:
		r.fail(roost.AttrInAlloc, "an alloc set cannot be inside another")
	case p.IsAlloc && p.Service != nil:
		r.fail(roost.AttrService, nothing)
	case p.IsAlloc && p.Schedule != nil:
		r.fail(roost.AttrSchedule, nothing)
	case p.IsAlloc && p.Interactive:
		r.fail(roost.AttrInteractive, nothing)
	case p.IsAlloc && p.Walltime > 0:
		r.fail(roost.AttrWalltime, "an alloc set stays until it is removed, and has none")
	case p.IsAlloc && len(p.Ports) > 0:
		r.fail(roost.AttrPorts, nothing)
	case p.IsAlloc && len(p.Secrets) > 0:
		r.fail(roost.AttrSecrets, nothing)
	case p.IsAlloc && len(p.PackageMounts) > 0:
		r.fail(roost.AttrPackageMounts, nothing)
	case p.IsAlloc && !p.Rerunnable:
		r.fail(roost.AttrRerunnable, "an alloc that loses its machine gets another")
	case (p.IsAlloc || p.Inside.Alloc != 0) && (p.GangSize > 1 || p.MPIGang):
		r.fail(roost.AttrGangSize, "there are no gangs of allocs, and none inside them")
	case p.Inside.Alloc == 0:
	case p.Schedule != nil:
		r.fail(roost.AttrSchedule, "a run that is made later cannot be inside an alloc set")
	case p.requirements != "":
		r.fail(roost.AttrRequirements, placed)
	case p.rank != "":
		r.fail(roost.AttrRank, placed)
	case p.Reservation != "":
		r.fail(roost.AttrReservation, placed)
	default:
		for _, a := range []string{roost.AttrLimits, roost.AttrExclusive, roost.AttrSpread, roost.AttrPrefer} {
			if r.has(a) {
				r.fail(a, placed)
				return
			}
		}
	}
}

// AllocTooSmall says what a task asks for that an alloc does not have; empty if it fits.
func AllocTooSmall(task, alloc roost.Resources) string {
	switch {
	case task.CPU > alloc.CPU:
		return fmt.Sprintf("%v cores, and the alloc has %v", task.CPU, alloc.CPU)
	case task.Memory > alloc.Memory:
		return fmt.Sprintf("%v of memory, and the alloc has %v", task.Memory, alloc.Memory)
	case task.Disk > alloc.Disk:
		return fmt.Sprintf("%v of disk, and the alloc has %v", task.Disk, alloc.Disk)
	case !task.IO.FitsIn(alloc.IO):
		return fmt.Sprintf("%v of disk I/O and %v of network, and the alloc has %v and %v", task.IO.Disk,
			task.IO.Network, alloc.IO.Disk, alloc.IO.Network)
	case task.GPUs > alloc.GPUs:
		return fmt.Sprintf("%d GPUs, and the alloc has %d", task.GPUs, alloc.GPUs)
	case task.GPUs > 0 && alloc.GPUMemory > 0 && task.GPUMemory == 0:
		return fmt.Sprintf("a whole GPU, and the alloc has %v of one", alloc.GPUMemory)
	case task.GPUs > 0 && alloc.GPUMemory > 0 && task.GPUMemory > alloc.GPUMemory:
		return fmt.Sprintf("%v of a GPU, and the alloc has %v", task.GPUMemory, alloc.GPUMemory)
	}
	return ""
}

// allocCount is how many allocs the user of an alloc set wants; 0 if it is not stated.
func (r *adReader) allocCount() int {
	count, _ := r.ad.Int(roost.AttrTaskCount)
	return int(min(max(count, 0), roost.MaxTasks))
}
