package roost

import (
	"fmt"
	"strconv"
	"strings"
)

// JobID names a job in its pool by the schedd's sequence number and the schedd's host. It
// is written "123.host", as in POSIX batch services (XCU 3.1.2.3).
type JobID struct {
	Seq  uint64
	Host string
}

func (id JobID) String() string { return strconv.FormatUint(id.Seq, 10) + "." + id.Host }

// IsZero reports whether id names no job: sequence numbers start at 1.
func (id JobID) IsZero() bool { return id.Seq == 0 }

// Task returns the id of the task with that index.
func (id JobID) Task(index int) TaskID { return TaskID{Job: id, Index: index} }

// Compare orders ids by host, then by sequence number.
func (id JobID) Compare(other JobID) int {
	if c := strings.Compare(id.Host, other.Host); c != 0 {
		return c
	}
	switch {
	case id.Seq < other.Seq:
		return -1
	case id.Seq > other.Seq:
		return 1
	}
	return 0
}

// TaskID names one task of a job, written "123[7].host". Indexes count from 0.
type TaskID struct {
	Job   JobID
	Index int
}

func (id TaskID) String() string {
	return strconv.FormatUint(id.Job.Seq, 10) + "[" + strconv.Itoa(id.Index) + "]." + id.Job.Host
}

// AttemptNumber numbers the executions of one task from 1. It is the fencing token of a
// task: it only rises, and a message with a lower number than the current one is dropped.
type AttemptNumber int32

// AttemptID names one execution of one task, written "123[7].host/2".
type AttemptID struct {
	Task    TaskID
	Attempt AttemptNumber
}

func (id AttemptID) String() string { return fmt.Sprintf("%v/%d", id.Task, id.Attempt) }

// ParseJobID reads "123", "123.host" or the array form "123[].host"; the argument host
// replaces a missing host.
func ParseJobID(s, host string) (JobID, error) {
	id, index, err := parseID(s, host)
	if err == nil && index != "" {
		err = fmt.Errorf("%q names a task, and a job is wanted", s)
	}
	return id, err
}

// parseID splits "seq[index].host" and returns the index as text, which is empty if there
// is none.
func parseID(s, host string) (id JobID, index string, err error) {
	bad := fmt.Errorf("%q is not a job id: write it as 123, 123.host or 123[7].host", s)
	head, rest, dotted := strings.Cut(s, ".")
	if dotted {
		if host = rest; host == "" || strings.ContainsAny(host, " \t\n[]/") {
			return JobID{}, "", bad
		}
	}
	if digits, tail, bracketed := strings.Cut(head, "["); bracketed {
		if !strings.HasSuffix(tail, "]") {
			return JobID{}, "", bad
		}
		head, index = digits, strings.TrimSuffix(tail, "]")
	}
	seq, perr := strconv.ParseUint(head, 10, 64)
	if perr != nil || seq == 0 {
		return JobID{}, "", bad
	}
	return JobID{Seq: seq, Host: host}, index, nil
}
