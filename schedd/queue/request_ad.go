package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// requestKey tells classes of tasks apart.
func (p *jobSpec) requestKey(owner string, uid, gid uint32, job roost.JobID) string {
	n := p.resources // number by number: its text rounds
	return fmt.Sprintf("%q %q %d %d %q %d %s %d %d %d %d %d %q %q %s %q %v %v %v %s", p.queue, owner, uid, gid,
		p.group, p.band, p.appClass,
		int64(n.CPU), int64(n.Memory), int64(n.Disk), n.GPUs, int64(n.GPUMemory), p.requirements, p.rank, p.transfer,
		p.domain, p.lease, p.needsRestore, p.slotUser,
		p.softConstraints.requestKey(job)) + p.futureKey(job) + p.queueRequirements
}

// futureKey tells classes apart by what is known of their future. A job of gangs has a
// request of its own, each gang that one of it leads has, and so has a stream job, which
// is refused by itself.
func (p *jobSpec) futureKey(job roost.JobID) string {
	if p.now != "" {
		return fmt.Sprintf(" %d %q %d %v %d now %s ", p.walltime, p.reservation, p.gangSize, job, p.arrayMPIGang, p.now)
	}
	if p.gangSize > 1 || p.appClass == roost.AppStream {
		return fmt.Sprintf(" %d %q %d %v %d", p.walltime, p.reservation, p.gangSize, job, p.arrayMPIGang)
	}
	return fmt.Sprintf(" %d %q", p.walltime, p.reservation)
}

// requestAd is what a machine's policy may look at before it takes a job, and what looks
// at machines: startd/desktop/policy knows the names.
func (p *jobSpec) requestAd(owner string, uid uint32, job roost.JobID) string {
	ad := classad.New()
	ad.SetString(roost.AttrMyType, "Job")
	ad.SetString(roost.AttrOwner, owner)
	ad.SetInt(roost.AttrOwnerUID, int64(uid))
	ad.SetString(roost.AttrGroup, p.group)
	ad.SetString(roost.AttrBand, p.band.String())
	ad.SetReal(roost.AttrRequestCpus, p.resources.CPU.Cores())
	ad.SetInt(roost.AttrRequestMemory, int64((p.resources.Memory+roost.MiB-1)/roost.MiB))
	ad.SetInt(roost.AttrRequestDisk, int64((p.resources.Disk+roost.KiB-1)/roost.KiB))
	ad.SetInt(roost.AttrRequestGpus, int64(p.resources.GPUs))
	if p.resources.GPUMemory > 0 {
		ad.SetInt(roost.AttrRequestGpuMem, int64((p.resources.GPUMemory+roost.MiB-1)/roost.MiB))
	}
	if p.appClass != roost.AppBatch {
		ad.SetString(roost.AttrAppClass, p.appClass)
	}
	if p.domain != "" {
		ad.SetString(roost.AttrFileSystemDomain, p.domain)
	}
	if p.queue != "" {
		ad.SetString(roost.AttrQueue, p.queue)
	}
	if p.walltime > 0 {
		ad.SetInt(roost.AttrWalltime, int64(p.walltime/time.Second))
	}
	if p.reservation != "" {
		ad.SetString(roost.AttrReservation, p.reservation)
	}
	if p.gangSize > 1 {
		ad.SetInt(roost.AttrGangSize, int64(p.gangSize))
	}
	require := p.requirements
	if require == "" {
		require = "true"
	}
	if p.queueRequirements != "" {
		require = "(" + require + ") && (" + p.queueRequirements + ")"
	}
	if p.now != "" && p.now != anywhere {
		require = "(" + require + ") && (" + onlyOn(p.now) + ")"
	}
	if p.transfer == "never" { // it needs the files where they are
		require = "(" + require + ") && TARGET." + roost.AttrFileSystemDomain + " == MY." + roost.AttrFileSystemDomain
	}
	if p.needsRestore {
		require = "(" + require + ") && TARGET." + roost.AttrHasCheckpoint + " =?= true"
		if p.slotUser {
			require += " && TARGET." + roost.AttrSlotUsers + " =!= false"
		} else { // at home its user is itself
			require += " && (TARGET." + roost.AttrSlotUsers + " =!= true || TARGET." + roost.AttrMachine + " == " +
				strconv.Quote(job.Host) + ")"
		}
	}
	set := func(name, src string) {
		if err := ad.SetExpr(name, src); err != nil {
			panic(fmt.Sprintf("queue: %s: %v", name, err)) // it was printed by the parser's own printer
		}
	}
	set(roost.AttrRequirements, require)
	if p.rank != "" {
		set(roost.AttrRank, p.rank)
	}
	p.softConstraints.describeInAd(ad, job)
	return ad.String()
}

// anywhere is the request to run now on whichever machine; else the names of the machines
// are joined with "+".
const anywhere = "*"

// onlyOn is the requirement that a machine is one of those named. A name without a domain
// is also that of a machine with one.
func onlyOn(where string) string {
	var any []string
	for _, host := range strings.Split(where, "+") {
		for _, attr := range []string{"TARGET." + roost.AttrMachine, "TARGET." + roost.AttrName} {
			if any = append(any, attr+" == "+strconv.Quote(host)); !strings.Contains(host, ".") {
				any = append(any, fmt.Sprintf("substr(%s, 0, %d) == %q", attr, len(host)+1, host+"."))
			}
		}
	}
	return strings.Join(any, " || ")
}
