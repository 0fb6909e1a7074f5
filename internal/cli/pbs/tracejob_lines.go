package pbs

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// The kinds of lines.
const (
	traceAdmin = 0x4
	traceJob   = 0x8
	traceUsage = 0x10
	traceSched = 0x40
)

// traceLines are what is known of a job, as lines in OpenPBS's words.
func (t *tracejobQuery) traceLines(s *scheddapi.JobStatus, events []*scheddapi.JobEvent) (lines []traceLine) {
	j := newPBSJob(t.Invocation, s)
	add := func(e *scheddapi.JobEvent, from byte, kind int, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if t.IsSet('v') && e.GetAttempt() > 0 {
			name := e.GetId()
			if !s.GetArray() {
				name = s.GetId()
			}
			text = fmt.Sprintf("%s attempt %d: %s", name, e.GetAttempt(), text)
		} else if e.GetId() != s.GetId() && s.GetArray() {
			text = e.GetId() + ": " + text
		}
		lines = append(lines, traceLine{e.GetTime(), from, kind, text})
	}
	node, began := "", int64(0)
	for _, e := range events {
		if e.GetChunk() > 0 { // it is held for the first, and has nothing to tell
			continue
		}
		if e.GetNode() != "" {
			node = e.GetNode()
		}
		if e.GetWhat() == "started" {
			began = e.GetTime()
		}
		switch e.GetWhat() {
		case "submitted":
			add(e, 'S', traceJob, "Job Queued at request of %s@%s, owner = %s@%s, job name = %s, queue = %s",
				s.GetOwner(), j.host, s.GetOwner(), j.host, replaceBlanks(s.GetName()), pbsQueue(s))
			add(e, 'A', traceUsage, "queue=%s", pbsQueue(s))
		case "assigned":
			add(e, 'L', traceSched, "Considering job to run")
			add(e, 'S', traceJob, "Job Run at request of Scheduler@%s on exec_vnode (%s)", j.host, e.GetNode())
		case "started":
			add(e, 'M', traceJob, "Started on %s", node)
			add(e, 'A', traceUsage, "%s", accountRecord(j, began, node))
		case "held":
			add(e, 'S', traceJob, "Holds u set%s", trailingText(e.GetText()))
		case "released":
			add(e, 'S', traceJob, "Holds u released%s", trailingText(e.GetText()))
		case "removed":
			add(e, 'S', traceJob, "Job to be deleted%s", trailingText(e.GetText()))
			add(e, 'A', traceUsage, "requestor=%s@%s", s.GetOwner(), j.host)
		case "run-now":
			add(e, 'S', traceJob, "Job to be run now%s", trailingText(e.GetText()))
		case "nodes-released":
			add(e, 'S', traceJob, "Nodes released%s", trailingText(e.GetText()))
		case "altered", "reordered":
			add(e, 'S', traceJob, "Job Modified%s", trailingText(e.GetText()))
		default:
			endLine(add, j, e, began, node)
		}
	}
	if why := s.GetReason(); why != "" && pbsState(s) == "Q" {
		add(&scheddapi.JobEvent{Time: t.Now().UnixNano(), Id: s.GetId()}, 'L', traceSched, "Not Running: %s", why)
	}
	return lines
}

// endLine adds how an attempt ended, and what else has no sentence of its own in OpenPBS.
func endLine(add func(*scheddapi.JobEvent, byte, int, string, ...any), j *pbsJob, e *scheddapi.JobEvent, began int64,
	node string) {
	x := e.GetExit()
	text := strings.TrimSpace(e.GetWhat() + trailingText(e.GetText()))
	if x == nil {
		from := byte('S')
		if e.GetAttempt() > 0 {
			from = 'M'
		}
		add(e, from, traceJob, "%s", text)
		return
	}
	status := pbsJobExitStatus(&scheddapi.JobStatus{Exit: x})
	add(e, 'M', traceJob, "task terminated on %s%s", node, trailingText(e.GetText()))
	used := fmt.Sprintf("Exit_status=%s resources_used.cput=%s resources_used.mem=%s resources_used.walltime=%s",
		status, pbsframe.ClockText(time.Duration(x.GetUserCpu()+x.GetSystemCpu())),
		kilobytes(jobs.PeakMemory(x)), pbsframe.ClockText(time.Duration(x.GetWall())))
	add(e, 'S', traceJob|traceUsage, "%s", used)
	add(e, 'A', traceUsage, "%s end=%d %s", accountRecord(j, began, node), e.GetTime()/int64(time.Second), used)
	if e.GetWhat() != "completed" && e.GetWhat() != "ended" && e.GetWhat() != "unlaunched" {
		add(e, 'S', traceJob, "Job requeued, %s%s", e.GetWhat(), trailingText(e.GetText()))
	}
}

// accountRecord is the part of a record of accounting that does not change.
func accountRecord(j *pbsJob, began int64, node string) string {
	parts := []string{"user=" + j.GetOwner()}
	if account := j.account(); account != "" {
		parts = append(parts, "account="+account)
	}
	seconds := int64(time.Second)
	parts = append(parts, "jobname="+replaceBlanks(j.GetName()), "queue="+pbsQueue(j.JobStatus),
		fmt.Sprintf("ctime=%d", j.GetSubmitted()/seconds), fmt.Sprintf("qtime=%d", j.GetSubmitted()/seconds),
		fmt.Sprintf("etime=%d", j.eligibleSince()/seconds), fmt.Sprintf("start=%d", began/seconds),
		"exec_host="+j.hosts(node))
	for _, r := range j.resources() {
		parts = append(parts, "Resource_List."+r.Resource+"="+r.Value)
	}
	return strings.Join(parts, " ")
}

// hosts is exec_host of an attempt on that node.
func (j *pbsJob) hosts(node string) string {
	if list := execHostOfChunks(j.GetChunks()); list != "" {
		return qstat.ShortHosts(list)
	}
	return qstat.ShortHosts(onHost(node, j.GetRequest()))
}

// trailingText is a text behind what it explains, or nothing.
func trailingText(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
