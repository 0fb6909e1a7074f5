package queue

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// SubmitSpec is a job as it is to be submitted: an ad, how many tasks, and one value a
// task for each column.
type SubmitSpec struct {
	Ad                *classad.Ad
	Count             int
	Columns           []TaskColumn
	DeferredAdmission bool // nobody could say whether quotas allow it
}

// jobSpec is what the queue itself needs to know of an ad, read once.
type jobSpec struct {
	name              string
	group             string
	band              roost.PriorityBand
	priority          int
	resources         roost.Resources
	appClass          string // of the application: roost.AppBatch or roost.AppStream
	requirements      string // the user's Requirements, as text
	queueRequirements string // and its queue's
	rank              string
	softConstraints   softConstraints
	walltime          time.Duration
	gangSize          int  // so many tasks start together; below 2: each for itself
	mpiGang           bool // by the first of them
	processes         int  // of a task, in the file of nodes; below 0: there is none
	reservation       string
	noticePeriod      time.Duration
	lease             time.Duration
	retries           int
	rerunnable        bool
	interactive       bool // it has a terminal, and ends with it
	maxRunning        int
	startAfter        int64 // unix seconds
	holdOnSubmit      bool
	transfer          string
	domain            string // FileSystemDomain
	array             bool
	arrayMPIGang      int // the gang of tasks that one of them leads
	queue             string
	checkpoints       *checkpointSettings // nil: no checkpoints
	needsRestore      bool                // wants a machine that can restore an image
	slotUser          bool                // of a slot user's processes
	now               string              // to start now, out of turn: anywhere, or the machines; empty: in turn
	processLimits     ProcessLimits
	mail              *mailOptions // nil: nobody is told of anything
	runCount          int          // attempts that are counted before the first; below 0: none are counted
	fromQsub          bool         // it came by qsub
	scriptFile        string
}

// readJobSpec reads and checks an ad. Errors name the attribute.
func readJobSpec(ad *classad.Ad) (p jobSpec, err error) {
	r := adReader{ad: ad}
	p.name, p.group = r.text(roost.AttrJobName, "job"), r.text(roost.AttrGroup, "")
	if p.band, err = roost.ParsePriorityBand(r.text(roost.AttrBand, roost.BatchBand.String())); err != nil {
		r.fail(roost.AttrBand, err.Error())
	}
	p.priority = int(r.number(roost.AttrPriority, 0, roost.MinPriority, roost.MaxPriority))
	p.resources = roost.Resources{
		CPU: roost.MilliCPU(math.Ceil(r.real(roost.AttrRequestCpus, roost.DefaultCPU.Cores(), 1e6) * 1000)),
		Memory: roost.Bytes(r.number(roost.AttrRequestMemory, int64(roost.DefaultMemory/roost.MiB), 0, 1<<32)) *
			roost.MiB,
		Disk: roost.Bytes(r.number(roost.AttrRequestDisk, 0, 0, 1<<42)) * roost.KiB,
	}
	p.resources.GPUs, p.resources.GPUMemory = r.gpus()
	if p.appClass = r.text(roost.AttrAppClass, roost.AppBatch); p.appClass != roost.AppBatch &&
		p.appClass != roost.AppStream {
		r.fail(roost.AttrAppClass, fmt.Sprintf("%q is none of %s, %s", p.appClass, roost.AppBatch, roost.AppStream))
	}
	if p.resources.CPU < 1 {
		r.fail(roost.AttrRequestCpus, "a task needs some part of a core")
	}
	p.walltime = time.Duration(r.number(roost.AttrWalltime, 0, 0, maxSeconds)) * time.Second
	p.noticePeriod = time.Duration(r.number(roost.AttrNoticePeriod, defaultNotice, 0, maxSeconds)) * time.Second
	p.processLimits, p.mail = r.processLimits(), r.mailOptions()
	p.runCount = int(r.number(roost.AttrRunCount, -1, 0, math.MaxInt32))
	p.lease = time.Duration(r.number(roost.AttrJobLease, 0, 0, maxSeconds)) * time.Second
	p.retries = int(r.number(roost.AttrMaxRetries, 0, 0, 1_000_000))
	p.gangSize, p.reservation = int(r.number(roost.AttrGangSize, 0, 0, roost.MaxTasks)),
		r.text(roost.AttrReservation, "")
	p.mpiGang, p.processes = r.boolean(roost.AttrMPIGang, false),
		int(r.number(roost.AttrProcesses, -1, 0, maxProcesses))
	p.array = r.boolean(attrArray, false)
	p.maxRunning = int(r.number(roost.AttrMaxRunning, 0, 0, roost.MaxTasks))
	p.startAfter = r.number(roost.AttrStartAfter, 0, 0, math.MaxInt64/int64(time.Second))
	p.rerunnable, p.holdOnSubmit = r.boolean(roost.AttrRerunnable, true), r.boolean(roost.AttrHoldOnSubmit, false)
	// whoever sat there sits there no more the second time
	if p.interactive = r.boolean(roost.AttrInteractive, false); p.interactive {
		p.rerunnable, p.retries = false, 0
	}
	p.transfer, p.domain, p.queue = r.text(roost.AttrTransfer, "auto"), r.text(roost.AttrFileSystemDomain, ""),
		r.text(roost.AttrQueue, "")
	if !slices.Contains([]string{"auto", "always", "never"}, p.transfer) {
		r.fail(roost.AttrTransfer, fmt.Sprintf("%q is none of auto, always, never", p.transfer))
	}
	if p.checkpoints = r.checkpointSettings(); p.interactive {
		p.checkpoints = nil // neither the terminal nor what runs on it could be brought back
	} else if p.gangSize > 1 && p.checkpoints != nil && (p.mpiGang || !p.checkpoints.Self) {
		p.checkpoints = nil // images of processes that talk to each other would be of different moments
	}
	p.fromQsub, p.scriptFile = r.has(roost.AttrPBS), r.text(roost.AttrScriptFile, "")
	p.requirements, p.rank, p.queueRequirements = r.expression(roost.AttrRequirements), r.expression(roost.AttrRank),
		r.expression(roost.AttrQueueRequires)
	p.softConstraints = r.softConstraints()
	if r.text(roost.AttrCmd, "") == "" && r.text(roost.AttrScript, "") == "" && r.text(roost.AttrScriptFile, "") == "" {
		r.fail(roost.AttrCmd, "the job names neither a program nor a script")
	}
	return p, r.err
}

const (
	maxSeconds    = 100 * 365 * 86400
	maxProcesses  = 1 << 16
	defaultNotice = 10
)

// TaskColumn holds one value for each task.
type TaskColumn struct {
	Name   string
	Values []string
}

// attrArray marks jobs that were submitted as several tasks, though it may be one
// ("0-0").
const attrArray = "Array"
