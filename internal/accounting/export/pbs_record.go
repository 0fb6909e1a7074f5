package export

import (
	"cmp"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/linetext"
	"github.com/roost-batch/roost/internal/accounting/sacct"
)

// PBSLineBytes is the longest record that PBS itself reads. The bounds of the names in a
// record keep every one shorter.
const PBSLineBytes = 4095

// The bounds of names in a record, in bytes.
const (
	pbsNameBytes = 128
	pbsHostBytes = 255
	pbsJobBytes  = 230 // a job's name in OpenPBS
)

// pbsWriter formats the records of a log, each in line.
type pbsWriter struct {
	line    []byte
	zone    *time.Location
	names   *linetext.Escaper
	hosts   *linetext.Escaper // in places such as host/0*4+host/0
	message *linetext.Escaper // of text that is the whole rest of a record
	actions map[string]byte
	second  int64  // that stamp is for
	stamp   []byte // date and time
}

func newPBSWriter(zone *time.Location) *pbsWriter {
	return &pbsWriter{
		zone: zone, names: linetext.NewEscaper(` ;"`), hosts: linetext.NewEscaper(` ;"+/*,:()=`),
		message: linetext.NewEscaper(""), actions: pbsActions(), second: -1,
	}
}

// pbsActions are the types of records of actions. "removed" is A if nobody asked for it.
func pbsActions() map[string]byte {
	return map[string]byte{"removed": 'D', "aborted": 'A', "checkpointed": 'C', "restored": 'T', "suspended": 'z',
		"resumed": 'r'}
}

// begin writes a record up to its attributes: time, type and id. Index is that of a task
// of an array, or -1 for the whole job.
func (p *pbsWriter) begin(at accounting.Millis, kind byte, j *accounting.JobEntry, index int) {
	if second := int64(at) / 1000; second != p.second {
		p.second = second
		p.stamp = time.Unix(second, 0).In(p.zone).AppendFormat(p.stamp[:0], "01/02/2006 15:04:05")
	}
	p.line = append(append(p.line, p.stamp...), ';', kind, ';')
	p.line = strconv.AppendUint(p.line, j.Seq, 10)
	if j.Array {
		p.line = append(p.line, '[')
		if index >= 0 {
			p.line = strconv.AppendInt(p.line, int64(index), 10)
		}
		p.line = append(p.line, ']')
	}
	p.line = p.hosts.Append(append(p.line, '.'), j.Host, pbsHostBytes)
	p.line = append(p.line, ';')
}

func (p *pbsWriter) end() {
	if last := len(p.line) - 1; p.line[last] == ' ' {
		p.line = p.line[:last]
	}
	p.line = append(p.line, '\n')
}

func (p *pbsWriter) number(key string, n int64) {
	p.line = append(strconv.AppendInt(append(append(p.line, key...), '='), n, 10), ' ')
}

func (p *pbsWriter) clock(key string, seconds int64) {
	p.line = append(sacct.AppendClock(append(append(p.line, key...), '='), seconds), ' ')
}

func (p *pbsWriter) name(key, text string, most int) {
	if text != "" {
		p.line = append(p.names.Append(append(append(p.line, key...), '='), text, most), ' ')
	}
}

// required writes a name also if it is empty.
func (p *pbsWriter) required(key, text string) {
	p.line = append(p.names.Append(append(append(p.line, key...), '='), text, pbsNameBytes), ' ')
}

// kib writes an amount in kb, rounded up.
func (p *pbsWriter) kib(key string, n roost.Bytes) {
	p.line = append(appendKiB(append(append(p.line, key...), '='), n), ' ')
}

func appendKiB(b []byte, n roost.Bytes) []byte {
	return append(strconv.AppendInt(b, sacct.KiB(n), 10), "kb"...)
}

// jobNames writes who the job is of, and what it is called. User, group and queue are
// always there: XDMoD gives up a file with a record that lacks one.
func (p *pbsWriter) jobNames(j *accounting.JobEntry) {
	p.required("user", j.Owner)
	p.required("group", cmp.Or(j.UnixGroup, strconv.FormatUint(uint64(j.GID), 10)))
	p.name("account", cmp.Or(j.Project, j.Group), pbsNameBytes)
	p.name("project", j.Group, pbsNameBytes)
	p.name("jobname", j.Name, pbsJobBytes)
	p.required("queue", cmp.Or(j.Queue, roost.DefaultQueueName))
	p.number("ctime", int64(j.Submitted)/1000)
	p.number("qtime", int64(j.Submitted)/1000)
	p.number("etime", int64(max(j.Eligible, j.Submitted))/1000)
}

// request writes what one task asked for.
func (p *pbsWriter) request(j *accounting.JobEntry) {
	if j.Request.Memory > 0 {
		p.kib("Resource_List.mem", j.Request.Memory)
	}
	p.number("Resource_List.ncpus", sacct.CPUs(j.Request.CPU))
	if j.Request.GPUs > 0 {
		p.number("Resource_List.ngpus", int64(j.Request.GPUs))
	}
	p.number("Resource_List.nodect", 1)
	p.line = append(p.line, "Resource_List.place=pack Resource_List.select=1"...)
	p.chunk(&j.Request)
	p.line = append(p.line, ' ')
	if j.Walltime > 0 {
		p.clock("Resource_List.walltime", (min(j.Walltime, 1<<62)+999)/1000)
	}
}

// chunk writes amounts behind a chunk or a vnode, as in ":ncpus=4:mem=1024kb".
func (p *pbsWriter) chunk(r *roost.Resources) {
	p.line = strconv.AppendInt(append(p.line, ":ncpus="...), sacct.CPUs(r.CPU), 10)
	if r.Memory > 0 {
		p.line = appendKiB(append(p.line, ":mem="...), r.Memory)
	}
	if r.GPUs > 0 {
		p.line = strconv.AppendInt(append(p.line, ":ngpus="...), int64(r.GPUs), 10)
	}
}

// place writes when and where an attempt started.
func (p *pbsWriter) place(a *accounting.AttemptRecord) {
	p.number("start", int64(a.Started)/1000)
	p.line = append(p.hosts.Append(append(p.line, "exec_host="...), a.Node, pbsHostBytes), "/0"...)
	if cpus := sacct.CPUs(a.Held.CPU); cpus > 1 {
		p.line = strconv.AppendInt(append(p.line, '*'), cpus, 10)
	}
	p.line = p.hosts.Append(append(p.line, " exec_vnode=("...), a.Node, pbsHostBytes)
	p.chunk(&a.Held)
	p.line = append(p.line, ") "...)
}

func (p *pbsWriter) queued(j *accounting.JobEntry) {
	p.begin(j.Submitted, 'Q', j, -1)
	p.jobNames(j)
	p.request(j)
	p.end()
}

func (p *pbsWriter) started(a *accounting.AttemptRecord) {
	if a.Started == 0 || a.Node == "" {
		return
	}
	p.begin(a.Started, 'S', a.Job, a.Index)
	p.jobNames(a.Job)
	p.place(a)
	p.request(a.Job)
	p.number("session", 0)
	p.number("run_count", int64(a.Attempt))
	p.end()
}

// ended writes the end of an attempt that had started. It is R where the pool, the
// machine or its owner ended it, since PBS writes that of a job that will run again, and
// E otherwise.
func (p *pbsWriter) ended(a *accounting.AttemptRecord) {
	if a.Started == 0 || a.Ended == 0 || a.Node == "" || a.Cause == accounting.NotEnded {
		return
	}
	kind := byte('R')
	if a.Cause.IsCharged() {
		kind = 'E'
	}
	p.begin(a.Ended, kind, a.Job, a.Index)
	p.jobNames(a.Job)
	p.place(a)
	p.request(a.Job)
	p.number("session", 0)
	p.number("end", int64(sacct.EndTime(a))/1000)
	p.number("Exit_status", pbsExitStatus(&a.AttemptEntry))
	p.clock("resources_used.cput", max(a.UserCPU+a.SystemCPU, 0)/1000)
	p.kib("resources_used.mem", a.Peak.Memory)
	p.number("resources_used.ncpus", sacct.CPUs(a.Held.CPU))
	p.clock("resources_used.walltime", sacct.ElapsedSeconds(&a.AttemptEntry))
	p.number("run_count", int64(a.Attempt))
	p.end()
}

// acted writes what somebody did to a job, if PBS has a type of record for it.
func (p *pbsWriter) acted(j *accounting.JobEntry, act *accounting.JobAction) {
	kind, known := p.actions[act.What]
	if !known {
		return
	}
	if kind == 'D' && act.By == "" {
		kind = 'A'
	}
	p.begin(act.Time, kind, j, act.Index)
	switch {
	case kind == 'A':
		p.line = p.message.Append(p.line, act.Reason, pbsHostBytes)
	case act.By != "":
		p.line = p.names.Append(append(p.line, "requester="...), act.By, pbsNameBytes)
		p.line = p.hosts.Append(append(p.line, '@'), j.Host, pbsHostBytes)
	}
	p.end()
}

// pbsExitStatus returns the Exit_status of PBS. It is the exit code, 256 and the signal,
// or a negative number where the batch system ended the job.
func pbsExitStatus(a *accounting.AttemptEntry) int64 {
	switch a.Cause {
	case accounting.EndedWalltime:
		return -29
	case accounting.EndedCPUTime:
		return -28
	case accounting.EndedMemory, accounting.EndedGPUMemory:
		return -27
	case accounting.EndedVirtualMemory:
		return -26
	case accounting.EndedLaunch:
		return -1
	case accounting.EndedPrologue:
		return -2
	case accounting.EndedVacate, accounting.EndedPreemption, accounting.EndedLease, accounting.EndedMachine,
		accounting.EndedRestore:
		return -11
	}
	switch {
	case a.Signal > 0:
		return 256 + int64(a.Signal)
	case a.Cause == accounting.EndedRemoval && a.ExitCode == 0:
		return 256 + 15
	case a.Cause == accounting.EndedDisk && a.ExitCode == 0:
		return 256 + 9
	}
	return int64(a.ExitCode)
}
