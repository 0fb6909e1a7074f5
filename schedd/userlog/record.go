package userlog

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// The numbers of events in a user log.
const (
	jobSubmitted  = 0
	jobExecuting  = 1
	jobEvicted    = 4
	jobTerminated = 5
	jobAborted    = 9
	jobSuspended  = 10
	jobResumed    = 11
	jobHeld       = 12
	jobReleased   = 13
)

// Record is one record of a user log.
type Record struct {
	Head string // "005 (012.000.000) 2026-11-29 12:00:00", which tells it from others
	Text string // all of it, with its end line
}

// endLine is behind each record.
const endLine = "...\n"

// Records returns the records of what has happened to tasks of a job. A task that has
// ended by itself has executed, also where that was not recorded.
func Records(e queue.UserLogEntry) (list []Record) {
	for _, line := range e.Lines {
		list = append(list, Record{Head: line, Text: line + "\n"})
	}
	for _, t := range e.Tasks {
		if t.Unstarted && t.State == roost.Completed {
			begun := e
			begun.Type, begun.Tasks = queue.Started, []queue.UserLogTask{{Index: t.Index, Node: t.Node}}
			list = append(list, Records(begun)...)
		}
		number, line, body := describe(&e, t)
		if line == "" {
			continue
		}
		head := fmt.Sprintf("%03d (%03d.%03d.000) %s", number, e.Job.Seq, t.Index,
			time.Unix(0, e.Time).Format("2006-01-02 15:04:05"))
		list = append(list, Record{Head: head, Text: head + " " + line + "\n" + body + endLine})
	}
	return list
}

// describe returns the number, the line and the body of a record. There is none where the
// line is empty.
func describe(e *queue.UserLogEntry, t queue.UserLogTask) (number int, line, body string) {
	switch e.Type {
	case queue.Submitted:
		if e.FlowNode != "" {
			body = "    DAG Node: " + oneLine(e.FlowNode) + "\n"
		}
		return jobSubmitted, "Job submitted from host: <" + oneLine(e.Job.Host) + ">", body
	case queue.Started:
		return jobExecuting, "Job executing on host: <" + oneLine(t.Node) + ">", ""
	case queue.Held:
		return jobHeld, "Job was held.", "\t" + reason(t.Reason) + "\n\tCode 1 Subcode 0\n"
	case queue.Released:
		return jobReleased, "Job was released.", "\t" + reason(t.Reason) + "\n"
	case queue.Suspended:
		return jobSuspended, "Job was suspended.", "\tNumber of processes actually suspended: 1\n"
	case queue.Resumed:
		return jobResumed, "Job was unsuspended.", ""
	case queue.RemovalRequested:
		return jobAborted, "Job was aborted.", "\t" + reason(t.Reason) + "\n"
	case queue.Ended:
		return describeEnd(t)
	}
	return 0, "", ""
}

// describeEnd is describe for a task whose attempt has ended.
func describeEnd(t queue.UserLogTask) (number int, line, body string) {
	switch t.State {
	case roost.Completed:
		return jobTerminated, "Job terminated.", termination(t) + usageLines(t) + byteLines
	case roost.Removed:
		return jobAborted, "Job was aborted.", "\t" + reason(t.Reason) + "\n"
	case roost.Held:
		return jobHeld, "Job was held.", "\t" + reason(t.Reason) + "\n\tCode 1 Subcode 0\n"
	}
	if t.Unstarted { // nothing says that it has executed
		return 0, "", ""
	}
	return jobEvicted, "Job was evicted.", "\t(0) Job was not checkpointed.\n" + usageLines(t) +
		"\t0  -  Run Bytes Sent By Job\n\t0  -  Run Bytes Received By Job\n"
}

// termination says how a task ended by itself.
func termination(t queue.UserLogTask) string {
	switch {
	case t.Exit == nil:
		return "\t(1) Normal termination (return value 0)\n"
	case t.Exit.Signal != 0:
		core := "\t(0) No core file\n"
		if t.Exit.Core {
			core = "\t(1) Corefile in: core\n"
		}
		return fmt.Sprintf("\t(0) Abnormal termination (signal %d)\n%s", t.Exit.Signal, core)
	}
	return fmt.Sprintf("\t(1) Normal termination (return value %d)\n", t.Exit.Code)
}

// byteLines stand for what was transferred, which is not counted.
const byteLines = "\t0  -  Run Bytes Sent By Job\n\t0  -  Run Bytes Received By Job\n" +
	"\t0  -  Total Bytes Sent By Job\n\t0  -  Total Bytes Received By Job\n"

// usageLines say how much CPU time a task has used. HTCondor's four kinds are the same
// here, but that nothing runs at the submit node.
func usageLines(t queue.UserLogTask) string {
	used := "Usr 0 00:00:00, Sys 0 00:00:00"
	if t.Exit != nil {
		used = "Usr " + days(t.Exit.User) + ", Sys " + days(t.Exit.System)
	}
	lines := "\t\t" + used + "  -  Run Remote Usage\n\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n"
	if t.State != roost.Completed {
		return lines
	}
	return lines + "\t\t" + used + "  -  Total Remote Usage\n\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage\n"
}

// days writes nanoseconds as days and a time.
func days(ns int64) string {
	s := ns / int64(time.Second)
	return fmt.Sprintf("%d %02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
}

// reason is a reason in one line. The end line cannot be made with it.
func reason(text string) string {
	if text = oneLine(text); text != "" {
		return text
	}
	return "no reason was given"
}

// oneLine replaces control characters, so that no text of a user's makes records.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// Missing returns the records that the end of a file does not have.
func Missing(end string, want []Record) (list []Record) {
	heads := map[string]int{}
	for line := range strings.Lines(end) {
		if len(line) > headSize(line) {
			heads[line[:headSize(line)]]++
		}
	}
	for _, r := range want {
		if heads[r.Head] > 0 {
			heads[r.Head]--
			continue
		}
		list = append(list, r)
	}
	return list
}

// headSize is the length of the head of a record whose first line that is; 0 for another
// line.
func headSize(line string) int {
	const timeSize = len(" 2006-01-02 15:04:05")
	end := strings.Index(line, ")")
	if len(line) < 5 || line[3:5] != " (" || end < 0 || len(line) < end+1+timeSize {
		return 0
	}
	return end + 1 + timeSize
}
