package condor

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// LogReader follows the jobs of a user log, by HTCondor or by Roost (HTCondor manual,
// "The Job Event Log").
type LogReader struct {
	rest  []byte // of a record whose end is not there yet
	ended map[JobID]bool
	open  int // jobs that have not ended
}

// LogEvent is a record of a user log.
type LogEvent struct {
	Number int
	Job    JobID
	Text   string // the record as it stands there
}

// The numbers of the events that a reader follows.
const (
	eventSubmitted  = 0
	eventTerminated = 5
	eventAborted    = 9
)

// maxLogRecord bounds one record, in bytes: what is longer is no user log.
const maxLogRecord = 1 << 20

// Add takes in what the log has more of, and returns the records that are whole now. An
// error says that the text is no user log.
func (l *LogReader) Add(text []byte) (list []LogEvent, err error) {
	l.rest = append(l.rest, text...)
	for {
		end := bytes.Index(l.rest, []byte("\n...\n"))
		if end < 0 {
			if len(l.rest) > maxLogRecord {
				return list, fmt.Errorf("it has a record of more than %d bytes", maxLogRecord)
			}
			if line, _, whole := bytes.Cut(l.rest, []byte{'\n'}); whole {
				_, err = parseLogRecord(string(line))
			}
			return list, err
		}
		record := string(l.rest[:end+5])
		l.rest = l.rest[end+5:]
		e, err := parseLogRecord(record)
		if err != nil {
			return list, err
		}
		l.note(e)
		list = append(list, e)
	}
}

// parseLogRecord reads the head of a record: "005 (012.000.000) 2026-11-29 12:00:00 ...".
func parseLogRecord(text string) (LogEvent, error) {
	e := LogEvent{Text: text}
	line, _, _ := strings.Cut(text, "\n")
	number, rest, _ := strings.Cut(line, " (")
	id, _, found := strings.Cut(rest, ")")
	parts := strings.Split(id, ".")
	n, ok := parseNumber(number, 16)
	if !found || !ok || len(parts) != 3 {
		return e, fmt.Errorf("%.60q is no record of it", line)
	}
	cluster, ok1 := parseNumber(parts[0], 64)
	proc, ok2 := parseNumber(parts[1], 31)
	if !ok1 || !ok2 {
		return e, fmt.Errorf("%.60q names no job", line)
	}
	e.Number, e.Job = int(n), JobID{cluster, int(proc)}
	return e, nil
}

func (l *LogReader) note(e LogEvent) {
	if l.ended == nil {
		l.ended = map[JobID]bool{}
	}
	ended, known := l.ended[e.Job]
	switch e.Number {
	case eventSubmitted:
		if !known {
			l.open++
			l.ended[e.Job] = false
		}
	case eventTerminated, eventAborted:
		if known && !ended {
			l.open--
		}
		l.ended[e.Job] = true
	}
}

// Jobs returns how many jobs the log names, and how many of them have ended.
func (l *LogReader) Jobs() (all, ended int) { return len(l.ended), len(l.ended) - l.open }

// HasEnded reports whether a job has ended, or each job of a cluster. Of what the log
// does not name nothing has.
func (l *LogReader) HasEnded(id JobID) bool {
	if id.Proc != WholeCluster {
		return l.ended[id]
	}
	any := false
	for job, ended := range l.ended {
		if job.Cluster == id.Cluster {
			if any = true; !ended {
				return false
			}
		}
	}
	return any
}

// StatusLine is what condor_wait -status prints of an event; empty for one that it does
// not name.
func (e LogEvent) StatusLine() string {
	what := map[int]string{0: "submitted", 1: "executing", 4: "evicted", 5: "completed", 9: "aborted", 10: "suspended",
		11: "unsuspended", 12: "held", 13: "released"}[e.Number]
	if what == "" {
		return ""
	}
	if _, host, ok := strings.Cut(strings.SplitN(e.Text, "\n", 2)[0], "on host: "); ok && e.Number == 1 {
		what += " on host " + host
	}
	return strconv.FormatUint(e.Job.Cluster, 10) + "." + strconv.Itoa(e.Job.Proc) + ".0 " + what
}
