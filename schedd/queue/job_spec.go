package queue

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
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

// adReader reads attributes and keeps the first mistake.
type adReader struct {
	ad  *classad.Ad
	err error
}

func (r *adReader) fail(name, why string) {
	if r.err == nil {
		r.err = fmt.Errorf("attribute %s: %w: %s", name, roost.Invalid, why)
	}
}

func (r *adReader) has(name string) bool { _, ok := r.ad.Lookup(name); return ok }

func (r *adReader) text(name, otherwise string) string {
	if !r.has(name) {
		return otherwise
	}
	s, ok := r.ad.Str(name)
	if !ok {
		r.fail(name, "a string is wanted")
	}
	return s
}

func (r *adReader) boolean(name string, otherwise bool) bool {
	if !r.has(name) {
		return otherwise
	}
	b, ok := r.ad.Bool(name)
	if !ok {
		r.fail(name, "true or false is wanted")
	}
	return b
}

func (r *adReader) number(name string, otherwise, low, high int64) int64 {
	if !r.has(name) {
		return otherwise
	}
	n, ok := r.ad.Int(name)
	if !ok || n < low || n > high {
		r.fail(name, fmt.Sprintf("a whole number from %d to %d is wanted", low, high))
		return otherwise
	}
	return n
}

func (r *adReader) real(name string, otherwise, high float64) float64 {
	if !r.has(name) {
		return otherwise
	}
	n, ok := r.ad.Real(name)
	if !ok || !(n > 0 && n <= high) {
		r.fail(name, fmt.Sprintf("a number above 0 and up to %g is wanted", high))
		return otherwise
	}
	return n
}

// gpus reads how many GPUs are asked for and how much memory of each: memory without a
// number means one GPU.
func (r *adReader) gpus() (n int, memory roost.Bytes) {
	memory = roost.Bytes(r.number(roost.AttrRequestGpuMem, 0, 0, 1<<32)) * roost.MiB
	n = int(r.number(roost.AttrRequestGpus, 0, 0, 1<<16))
	if memory > 0 && !r.has(roost.AttrRequestGpus) {
		n = 1
	}
	return n, memory
}

func (r *adReader) expression(name string) string {
	e, ok := r.ad.Lookup(name)
	if !ok {
		return ""
	}
	return e.String()
}

// The columns that override an attribute of the ad for each task, and so part a job's
// tasks into classes.
var overridableAttrs = []string{
	roost.AttrRequestCpus, roost.AttrRequestMemory, roost.AttrRequestDisk, roost.AttrRequestGpus,
	roost.AttrRequestGpuMem,
	roost.AttrRequirements, roost.AttrRank, roost.AttrWalltime, roost.AttrProcesses,
}

// overrideAttr applies one task's value of a column to a plan.
func (p *jobSpec) overrideAttr(name, value string) error {
	bad := func(why string) error { return fmt.Errorf("column %s: %w: %q %s", name, roost.Invalid, value, why) }
	whole := func(high int64) (int64, error) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || n > high {
			return 0, bad(fmt.Sprintf("is no whole number from 0 to %d", high))
		}
		return n, nil
	}
	var n int64
	var err error
	switch name {
	case roost.AttrRequestCpus:
		cores, perr := strconv.ParseFloat(value, 64)
		if perr != nil || !(cores > 0 && cores <= 1e6) {
			return bad("is no number of cores")
		}
		p.resources.CPU = roost.MilliCPU(math.Ceil(cores * 1000))
	case roost.AttrRequestMemory:
		n, err = whole(1 << 52)
		p.resources.Memory = roost.Bytes(n)
	case roost.AttrRequestDisk:
		n, err = whole(1 << 52)
		p.resources.Disk = roost.Bytes(n)
	case roost.AttrRequestGpus:
		n, err = whole(1 << 16)
		p.resources.GPUs = int(n)
	case roost.AttrRequestGpuMem:
		n, err = whole(1 << 52)
		p.resources.GPUMemory = roost.Bytes(n)
	case roost.AttrWalltime:
		n, err = whole(maxSeconds)
		p.walltime = time.Duration(n) * time.Second
	case roost.AttrProcesses:
		n, err = whole(maxProcesses)
		p.processes = int(n)
	case roost.AttrRequirements, roost.AttrRank:
		e, perr := classad.ParseExpr(value)
		if perr != nil {
			return fmt.Errorf("column %s: %w: %v", name, roost.Invalid, perr)
		}
		if name == roost.AttrRank {
			p.rank = e.String()
		} else {
			p.requirements = e.String()
		}
	}
	return err
}

// checkColumns checks names and lengths.
func checkColumns(columns []TaskColumn, count int) error {
	if len(columns) > roost.MaxColumns {
		return fmt.Errorf("%w: %d columns, and %d is the most", roost.Exhausted, len(columns), roost.MaxColumns)
	}
	seen := map[string]bool{}
	for _, c := range columns {
		switch {
		case c.Name == "" || strings.ContainsAny(c.Name, "$() \t\n"):
			return fmt.Errorf("column %q: %w: that is no name", c.Name, roost.Invalid)
		case seen[c.Name]:
			return fmt.Errorf("column %q: %w: it is there twice", c.Name, roost.Invalid)
		case len(c.Values) != count:
			return fmt.Errorf("column %q: %w: %d values for %d tasks", c.Name, roost.Invalid, len(c.Values), count)
		}
		seen[c.Name] = true
	}
	return nil
}
