package jobspec

import (
	"io/fs"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Job is one job, ready to be sent: the Go form of internal/wire's JobSpec.
type Job struct {
	Name    string       // JobName
	Label   string       // label in the job file, which "job.LABEL" refers to
	Ad      *classad.Ad  // one ad for all its tasks
	Count   int          // number of tasks: 1 <= Count <= roost.MaxTasks
	Columns []TaskColumn // what differs between tasks
	Array   bool         // several tasks were requested, even if there is only one
}

// TaskColumn holds the values of "$(Name)", one for each task: len(Values) == Job.Count.
type TaskColumn struct {
	Name   string
	Values []string
}

// ParseOptions says who submits, from where, and which files may be accessed.
type ParseOptions struct {
	Filename string            // as the user wrote it, for messages
	Vars     map[string]string // --var name=value: text, converted to the variable's type
	Dir      string            // absolute working directory of the submitter
	Home     string            // absolute home directory, for "~/"
	User     string            // login name
	Environ  []string          // environment of the submitter as "NAME=value", for getenv
	Files    FileAccess        // access to files; nil: none is accessed, and every file counts as present
	// files may be missing: they are there when the jobs begin
	LateFiles bool
	// with Files nil: file() and files() are errors; otherwise their results are unknown
	RefuseFiles bool
	// by label of a job: its items, which are each.value; a job with items has no count,
	// for_each or indexes
	Items map[string]*ItemTable
	// variables that differ between jobs with one ad: a row for each job. Variable
	// blocks of their names have these values.
	// Columns have the tasks of one job after the other
	Variables *ItemTable
	Now       time.Time   // for start_after; its location is the user's time zone
	Defaults  JobDefaults // zero fields are taken from StandardDefaults
}

// FileAccess gives access to the submitter's files with the submitter's rights. Paths are
// absolute and clean.
type FileAccess interface {
	// Stat follows symbolic links. Its error wraps fs.ErrNotExist if nothing is there.
	Stat(path string) (fs.FileInfo, error)
	// Access returns nil if the user may read the file (and, with exec, may run it).
	Access(path string, exec bool) error
	// Glob returns the sorted paths that match a pattern of path.Match.
	Glob(pattern string) ([]string, error)
	// Read returns a whole file, or an error if it has more than limit bytes.
	Read(path string, limit int64) ([]byte, error)
	// LookPath finds a program by its bare name along the user's PATH, as an absolute
	// path.
	LookPath(name string) (string, error)
}

// JobDefaults are the values of settings that a job does not set.
type JobDefaults struct {
	CPU      roost.MilliCPU
	Memory   roost.Bytes
	Disk     roost.Bytes
	Band     roost.PriorityBand // Free, the zero value, counts as unset
	Shell    string
	Transfer string        // "auto", "always", "never" or "store"
	Notice   time.Duration // between SIGTERM and SIGKILL
	Lease    time.Duration // how long a running task outlives the silence of its schedd
}

// StandardDefaults returns the defaults of an ordinary pool.
func StandardDefaults() JobDefaults {
	return JobDefaults{
		CPU: roost.DefaultCPU, Memory: roost.DefaultMemory, Disk: 0, Band: roost.BatchBand, Shell: "/bin/sh",
		Transfer: "auto",
		Notice:   30 * time.Second, Lease: 40 * time.Minute,
	}
}

// WithDefaults returns d with its zero fields taken from StandardDefaults.
func (d JobDefaults) WithDefaults() JobDefaults {
	std := StandardDefaults()
	if d.CPU == 0 {
		d.CPU = std.CPU
	}
	if d.Memory == 0 {
		d.Memory = std.Memory
	}
	if d.Band == roost.FreeBand {
		d.Band = std.Band
	}
	if d.Shell == "" {
		d.Shell = std.Shell
	}
	if d.Transfer == "" {
		d.Transfer = std.Transfer
	}
	if d.Notice == 0 {
		d.Notice = std.Notice
	}
	if d.Lease == 0 {
		d.Lease = std.Lease
	}
	return d
}

// EscapeLiteral doubles the dollar signs of a text, which then has no references in an
// ad.
func EscapeLiteral(s string) string { return strings.ReplaceAll(s, "$", "$$") }
