package client

import (
	"encoding/json"
	"time"
)

// Job is a job, or a task of one, as it was when it was read; see JOB in roost-json(7).
type Job struct {
	ID        string         `json:"id"` // "123.host" for a job, "123[7].host" for a task
	Name      string         `json:"name"`
	Owner     string         `json:"owner"`
	Queue     string         `json:"queue"`
	State     State          `json:"state"`
	Reason    string         `json:"reason"`  // why it waits, is held, or failed
	HeldBy    string         `json:"held_by"` // of a held task: "user", "operator" or "roost"
	Submitted time.Time      `json:"submitted"`
	Started   time.Time      `json:"started"` // zero: not yet
	Ended     time.Time      `json:"ended"`   // zero: not yet
	Array     bool           `json:"array"`
	Tasks     int            `json:"tasks"`
	Counts    map[string]int `json:"counts"`  // tasks by their states; "failed" are some of "completed"
	Index     int            `json:"index"`   // of a task
	Attempt   int            `json:"attempt"` // of a task, from 1; 0: it was never started
	Node      string         `json:"node"`    // of a task
	Exit      *Exit          `json:"exit"`    // of a task, or of a job of one task; nil: it has not ended

	Raw json.RawMessage `json:"-"` // the whole record
}

// State is the state of a job or a task.
type State string

// The states. Completed, Removed and Failed are final.
const (
	Blocked   State = "blocked"
	Held      State = "held"
	Idle      State = "idle"
	Starting  State = "starting"
	Running   State = "running"
	Suspended State = "suspended"
	Exiting   State = "exiting"
	Completed State = "completed"
	Removed   State = "removed"
	Failed    State = "failed"
)

// IsFinal reports whether a job or task in this state has ended.
func (s State) IsFinal() bool { return s == Completed || s == Removed || s == Failed }

// Exit is how an attempt ended, and what it used.
type Exit struct {
	Code        int     `json:"code"`
	Signal      int     `json:"signal"`       // 0: none
	SuccessCode int     `json:"success_code"` // the exit code that its job calls success
	Core        bool    `json:"core"`
	Cause       string  `json:"cause"` // "exited", "walltime", "memory" and so on, see roost-json(7)
	Reason      string  `json:"reason"`
	WallSeconds float64 `json:"wall_seconds"`
	UserCPU     float64 `json:"user_cpu_seconds"`
	SystemCPU   float64 `json:"system_cpu_seconds"`
	MaxRSS      int64   `json:"max_rss_bytes"`
	PeakMemory  int64   `json:"peak_memory_bytes"`
}

// Succeeded reports whether a job or task has ended well, with all of its tasks.
func (j *Job) Succeeded() bool {
	return j.State == Completed && j.Counts["failed"] == 0 && (j.Exit == nil ||
		j.Exit.Code == j.Exit.SuccessCode && j.Exit.Signal == 0)
}

// UnmarshalJSON reads a record. Members that are not known stay in Raw.
func (j *Job) UnmarshalJSON(text []byte) error {
	type plain Job // without this method
	if err := json.Unmarshal(text, (*plain)(j)); err != nil {
		return err
	}
	j.Raw = append(json.RawMessage(nil), text...)
	return nil
}

// Event is something that happened to a job, see EVENT in roost-json(7).
type Event struct {
	Sequence uint64    `json:"sequence"` // rises within a job
	Time     time.Time `json:"time"`
	ID       string    `json:"id"` // of the job or the task
	Attempt  int       `json:"attempt"`
	Node     string    `json:"node"`
	What     string    `json:"what"` // a word, such as "submitted", "started" or "completed"
	Text     string    `json:"text"`
	Exit     *Exit     `json:"exit"`
}
