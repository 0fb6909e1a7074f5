package jobad

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// RequestKey tells classes of tasks apart.
func (p *JobSpec) RequestKey(owner string, uid, gid uint32, job roost.JobID) string {
	n := p.Resources // number by number: its text rounds
	return fmt.Sprintf("%q %q %d %d %q %d %s %d %d %d %d %d %q %q %s %q %v %v %v %s", p.Queue, owner, uid, gid,
		p.Group, p.Band, p.AppClass,
		int64(n.CPU), int64(n.Memory), int64(n.Disk), n.GPUs, int64(n.GPUMemory), p.requirements, p.rank, p.Transfer,
		p.Domain, p.Lease, p.NeedsRestore, p.SlotUser,
		p.softConstraints.requestKey(job)) + p.futureKey(job) + p.allocKey(job) +
		p.secretKey() + p.containerKey() + p.homeKey() + p.machineKey() + p.queueRequirements
}

// AttrFlock is false in the ad of a job whose tasks run in no other pool.
const AttrFlock = "Flock"

// attrStaysHome is true in the ad of a request whose tasks run in no other pool.
const attrStaysHome = "StaysHome"

// StaysHomeText is a part of the ad of each request whose tasks run in no other pool.
const StaysHomeText = attrStaysHome + " = true"

// staysHome reports whether the tasks run in no other pool. The job says so, or they need
// what only their own pool has.
func (p *JobSpec) staysHome() bool {
	return p.NoFlock || len(p.Secrets) > 0 || p.Container != nil || len(p.PackageMounts) > 0 || p.Transfer == "never"
}

// homeKey tells the requests of jobs apart that say that they run in no other pool.
func (p *JobSpec) homeKey() string {
	if !p.NoFlock {
		return ""
	}
	return " home "
}

// RequestIsOfJob reports whether jobs that ask for the same make a request each.
func (p *JobSpec) RequestIsOfJob() bool {
	return p.IsAlloc || p.Inside.Alloc != 0 || p.Now != "" || p.GangSize > 1 ||
		p.AppClass == roost.AppStream || p.Service != nil || len(p.Ports) > 0 ||
		p.softConstraints.spread != ""
}

// futureKey tells classes apart by what is known of their future. A job of gangs has a
// request of its own, each gang that one of it leads has, a stream job, which is refused
// by itself, a service, and a job with ports, which has them again where it had them.
func (p *JobSpec) futureKey(job roost.JobID) string {
	if p.Now != "" {
		return fmt.Sprintf(" %d %q %d %v %d now %s ", p.Walltime, p.Reservation, p.GangSize, job, p.ArrayMPIGang,
			p.Now) + portKey(p.Ports)
	}
	if p.GangSize > 1 || p.AppClass == roost.AppStream || p.Service != nil || len(p.Ports) > 0 {
		return fmt.Sprintf(" %d %q %d %v %d", p.Walltime, p.Reservation, p.GangSize, job, p.ArrayMPIGang) +
			portKey(p.Ports)
	}
	return fmt.Sprintf(" %d %q", p.Walltime, p.Reservation)
}

// secretKey tells the requests of tasks with secrets apart, which not every machine can
// have.
func (p *JobSpec) secretKey() string {
	if len(p.Secrets) == 0 {
		return ""
	}
	return " secrets "
}

// allocKey tells the requests of alloc sets and of jobs inside them from all others. Each
// such job has a request of its own.
func (p *JobSpec) allocKey(job roost.JobID) string {
	if !p.IsAlloc && p.Inside.Alloc == 0 {
		return ""
	}
	return fmt.Sprintf(" alloc %v of %v in %d %v ", p.IsAlloc, job, p.Inside.Alloc, p.Inside.Anywhere)
}

// RequestAd returns the ad of a request, which the policy of a machine and the negotiator
// see. startd/desktop/policy knows the names of its attributes.
func (p *JobSpec) RequestAd(owner string, uid uint32, job roost.JobID) string {
	ad := classad.New()
	ad.SetString(roost.AttrMyType, "Job")
	ad.SetString(roost.AttrOwner, owner)
	ad.SetInt(roost.AttrOwnerUID, int64(uid))
	ad.SetString(roost.AttrGroup, p.Group)
	ad.SetString(roost.AttrBand, p.Band.String())
	ad.SetReal(roost.AttrRequestCpus, p.Resources.CPU.Cores())
	ad.SetInt(roost.AttrRequestMemory, int64((p.Resources.Memory+roost.MiB-1)/roost.MiB))
	ad.SetInt(roost.AttrRequestDisk, int64((p.Resources.Disk+roost.KiB-1)/roost.KiB))
	ad.SetInt(roost.AttrRequestGpus, int64(p.Resources.GPUs))
	if p.Resources.GPUMemory > 0 {
		ad.SetInt(roost.AttrRequestGpuMem, int64((p.Resources.GPUMemory+roost.MiB-1)/roost.MiB))
	}
	p.describeMachineOptions(ad)
	if p.AppClass != roost.AppBatch {
		ad.SetString(roost.AttrAppClass, p.AppClass)
	}
	if p.IsAlloc {
		ad.SetBool(roost.AttrAlloc, true)
	}
	if p.staysHome() {
		ad.SetBool(attrStaysHome, true)
	}
	if p.Domain != "" {
		ad.SetString(roost.AttrFileSystemDomain, p.Domain)
	}
	if p.Queue != "" {
		ad.SetString(roost.AttrQueue, p.Queue)
	}
	if p.Walltime > 0 {
		ad.SetInt(roost.AttrWalltime, int64(p.Walltime/time.Second))
	}
	if p.Reservation != "" {
		ad.SetString(roost.AttrReservation, p.Reservation)
	}
	describePorts(ad, p.Ports, job, p.SubmitHost)
	if p.GangSize > 1 {
		ad.SetInt(roost.AttrGangSize, int64(p.GangSize))
	}
	require := p.requirements
	if require == "" {
		require = "true"
	}
	if p.queueRequirements != "" {
		require = "(" + require + ") && (" + p.queueRequirements + ")"
	}
	if p.Now != "" && p.Now != Anywhere {
		require = "(" + require + ") && (" + onlyOn(p.Now) + ")"
	}
	if p.Transfer == "never" { // it needs the files where they are
		require = "(" + require + ") && TARGET." + roost.AttrFileSystemDomain + " == MY." + roost.AttrFileSystemDomain
	}
	if features := p.requiredFeatures(job); features != "" {
		require = "(" + require + ")" + features
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

// requiredFeatures returns what a machine must be able to do for the tasks, as a part of
// their requirements.
func (p *JobSpec) requiredFeatures(job roost.JobID) (require string) {
	if p.NeedsRestore {
		require = " && TARGET." + roost.AttrHasCheckpoint + " =?= true"
		if p.SlotUser {
			require += " && TARGET." + roost.AttrSlotUsers + " =!= false"
		} else { // at home its user is itself
			require += " && (TARGET." + roost.AttrSlotUsers + " =!= true || TARGET." + roost.AttrMachine + " == " +
				strconv.Quote(job.Host) + ")"
		}
	}
	if len(p.Secrets) > 0 {
		require += " && TARGET." + roost.AttrHasSecrets + " =?= true"
	}
	if p.MPI != "" {
		require += " && TARGET." + roost.AttrHasPMI + " =?= true"
	}
	if p.Container != nil || len(p.PackageMounts) > 0 {
		require += " && TARGET." + roost.AttrHasContainer + " =?= true"
	}
	return require + p.machineOptions.requiredHardware()
}

// Anywhere is the request to run now on whichever machine; else the names of the machines
// are joined with "+".
const Anywhere = "*"

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
