package export

import (
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/sacct"
	"github.com/roost-batch/roost/internal/sim/trace"
)

// SWFOptions are what the header of a log in the Standard Workload Format says. A number
// that is not known is 0 and left out.
type SWFOptions struct {
	Computer     string // name of the pool
	Installation string
	Window       accounting.TimeRange // times in the log are seconds since its begin
	Zone         string               // of the pool, as "Europe/Berlin"; empty: UTC
	MaxJobs      int64                // lines, which are attempts
	MaxNodes     int64
	MaxProcs     int64
	Queues       []string // queue i+1 of the log; others get higher numbers
}

// WriteSWF writes the attempts that ended as a log in the Standard Workload Format.
// Users, groups, programs and classes of machines have numbers in it, but no names.
// Attempts come in the order of submission and of key. It returns the number of lines.
//
// Each attempt is a line. Where a task ran more than once, the attempt before is the
// preceding job, since this one began after its end.
func WriteSWF(w io.Writer, attempts iter.Seq2[accounting.AttemptRecord, error], o SWFOptions) (n int64, err error) {
	out := trace.NewWriter(w)
	for _, h := range o.headers() {
		out.WriteHeader(h)
	}
	s := swfWriter{
		begin: o.Window.From, users: swfNumbers{}, groups: swfNumbers{}, programs: swfNumbers{}, queues: swfNumbers{},
		classes: swfNumbers{},
	}
	for _, q := range o.Queues {
		s.queues.of(q)
	}
	records := openStream("attempts by submission", attempts,
		func(a *accounting.AttemptRecord) accounting.Millis { return a.Job.Submitted })
	defer records.stop()
	for {
		if err := records.advance(); err != nil || !records.live {
			if err == nil {
				err = out.Flush()
			}
			return n, err
		}
		if records.head.Ended == 0 || records.head.Cause == accounting.NotEnded {
			continue
		}
		n++
		if err := out.WriteJob(s.line(n, &records.head)); err != nil {
			return n, err
		}
	}
}

// headers are the header fields in the order that the archive recommends.
func (o *SWFOptions) headers() (list []trace.HeaderField) {
	add := func(name, value string) {
		if value != "" {
			list = append(list, trace.HeaderField{Name: name, Value: value})
		}
	}
	count := func(name string, n int64) {
		if n > 0 {
			add(name, strconv.FormatInt(n, 10))
		}
	}
	zone := o.Zone
	if zone == "" {
		zone = "UTC"
	}
	date := func(t accounting.Millis) string {
		if t <= 0 {
			return ""
		}
		return time.UnixMilli(int64(t)).UTC().Format("Mon Jan 02 15:04:05 UTC 2006")
	}
	add("Version", "2.2")
	add("Computer", o.Computer)
	add("Installation", o.Installation)
	add("Conversion", "Roost, from its accounting")
	count("MaxJobs", o.MaxJobs)
	count("MaxRecords", o.MaxJobs)
	add("Preemption", "Yes")
	count("UnixStartTime", int64(o.Window.From)/1000)
	add("TimeZoneString", zone)
	add("StartTime", date(o.Window.From))
	add("EndTime", date(o.Window.To))
	count("MaxNodes", o.MaxNodes)
	count("MaxProcs", o.MaxProcs)
	add("AllowOveruse", "No")
	count("MaxQueues", int64(len(o.Queues)))
	for i, name := range o.Queues {
		add("Queue", strconv.Itoa(i+1)+" "+name)
	}
	add("Note", "Each line is one execution of a task. A task of an array is a job of its own.")
	add("Note", "An execution after the first one has the one before as its preceding job.")
	add("Note", "CPUs are rounded up to whole ones. Memory is the highest of the execution.")
	return list
}

// swfNumbers gives numbers to names, from 1 in the order in which they come.
type swfNumbers map[string]int64

// maxSWFNames bounds the names of one kind. Those after them are unknown.
const maxSWFNames = 1 << 20

func (m swfNumbers) of(name string) int64 {
	n := m[name]
	switch {
	case name == "" || n == 0 && len(m) >= maxSWFNames:
		return -1
	case n == 0:
		n = int64(len(m)) + 1
		m[name] = n
	}
	return n
}

// swfWriter makes lines of attempts.
type swfWriter struct {
	begin                                    accounting.Millis
	users, groups, programs, queues, classes swfNumbers

	last   accounting.AttemptKey // of the line before
	number int64                 // of that line
	job    trace.Job
}

// The bounds of the format's readers.
const (
	maxSWFSeconds = 1 << 32
	maxSWFProcs   = 1 << 30
)

// swfSeconds returns milliseconds in whole seconds, rounded.
func swfSeconds[T ~int64](millis T) int64 {
	return min((max(int64(min(millis, 1<<62)), 0)+500)/1000, maxSWFSeconds)
}

// line returns the line of an attempt, which is valid until the next call.
func (s *swfWriter) line(number int64, a *accounting.AttemptRecord) *trace.Job {
	procs := min(sacct.CPUs(a.Held.CPU), maxSWFProcs)
	asked := min(sacct.CPUs(a.Job.Request.CPU), maxSWFProcs)
	s.job = trace.Job{
		ID: number, Submit: swfSeconds(a.Job.Submitted - s.begin), Wait: swfSeconds(a.Started - a.Job.Submitted),
		RunTime: swfSeconds(a.Wall), Processors: procs, CPU: max(a.UserCPU+a.SystemCPU, 0) / 1000 / procs,
		Memory: sacct.KiB(a.Peak.Memory) / procs, RequestedProcessors: asked, RequestedTime: swfSeconds(a.Job.Walltime),
		RequestedMemory: sacct.KiB(a.Job.Request.Memory) / asked, Status: swfStatus(a), User: s.users.of(a.Job.Owner),
		Group: s.groups.of(a.Job.Group), Program: s.programs.of(a.Job.Arguments), Queue: s.queues.of(a.Job.Queue),
		Partition: s.classes.of(a.Class), PrecedingJob: -1, ThinkTime: -1,
	}
	if a.Started == 0 { // it never ran
		s.job.Wait, s.job.RunTime, s.job.Processors, s.job.CPU, s.job.Memory = -1, -1, -1, -1, -1
	}
	if a.Job.Walltime <= 0 {
		s.job.RequestedTime = -1
	}
	if s.number != 0 && s.last.JobKey == a.JobKey && s.last.Index == a.Index {
		s.job.PrecedingJob = s.number
	}
	s.last, s.number = a.AttemptKey, number
	return &s.job
}

// swfStatus returns 1 for completed, 5 for cancelled and 0 for failed, as which every
// other end counts.
func swfStatus(a *accounting.AttemptRecord) int64 {
	switch sacct.State(a) {
	case "COMPLETED":
		return 1
	case "CANCELLED":
		return 5
	}
	return 0
}
