package queue

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// RequestID names a request within one start of the schedd.
type RequestID uint64

// Request is an equivalence class of tasks (DESIGN §3): whatever runs one of them runs
// all.
type Request struct {
	ID               RequestID
	Owner            string
	UID, GID         uint32
	Group            string
	Queue            string // that its jobs were submitted to
	Band             roost.PriorityBand
	Resources        roost.Resources
	Class            string        // roost.AppBatch or roost.AppStream
	JobLease         time.Duration // 0: as the schedd has it
	Ad               string        // what the other side is matched with
	Ready            int           // tasks that could start now
	Walltime         time.Duration // of each; 0: none
	PredictedRuntime time.Duration // how long one is expected to take; 0: nobody knows
	Reservation      string
	Priority         int       // the highest among them
	OldestSubmit     time.Time // submit time of the first of those
	Now              bool      // an operator wants them to run now, out of turn

	key      string
	gangSize int // how many tasks start together; 0: each for itself
	// the number of the job whose tasks are led by the first of their gang, of which its
	// are; 0: it is of no such job
	mpiJob   uint64
	mpiGang  int // the gang of that job
	runtimes lastRuntimes
	classes  classHeap
	members  int // classes of jobs in the queue, waiting or not
	dirty    bool
}

// classHeap orders classes by priority, then by age.
type classHeap []*taskClass

func (h classHeap) Len() int { return len(h) }

func (h classHeap) Less(i, k int) bool {
	a, b := h[i].job, h[k].job
	if a.spec.priority != b.spec.priority {
		return a.spec.priority > b.spec.priority
	}
	return a.orderRank < b.orderRank
}

func (h classHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].heapIndex, h[k].heapIndex = i, k
}

func (h *classHeap) Push(x any) {
	c := x.(*taskClass)
	c.heapIndex = len(*h)
	*h = append(*h, c)
}

func (h *classHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	c.heapIndex = -1
	return c
}

// requestKey tells classes of tasks apart.
func requestKey(s *SubmittedJob, job roost.JobID, p *jobSpec) string {
	n := p.resources // number by number: its text rounds
	return fmt.Sprintf("%q %q %d %d %q %d %s %d %d %d %d %d %q %q %s %q %v %v %v %s", p.queue, s.Owner, s.UID, s.GID,
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
func requestAd(s *SubmittedJob, job roost.JobID, p *jobSpec) string {
	ad := classad.New()
	ad.SetString(roost.AttrMyType, "Job")
	ad.SetString(roost.AttrOwner, s.Owner)
	ad.SetInt(roost.AttrOwnerUID, int64(s.UID))
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
