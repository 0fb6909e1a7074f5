package submit

import (
	"io/fs"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Job is one job, ready to be sent: internal/wire's JobSpec in Go.
type Job struct {
	Name    string       // JobName
	Label   string       // what the job file calls it; "job.LABEL" there refers to it
	Ad      *classad.Ad  // one ad for all its tasks
	Count   int          // of tasks: 1 <= Count <= roost.MaxTasks
	Columns []TaskColumn // what differs between tasks
	Array   bool         // asked for as several tasks, even if there is only one
}

// TaskColumn holds the values of "$(Name)", one for each task: len(Values) == Job.Count.
type TaskColumn struct {
	Name   string
	Values []string
}

// ParseOptions says who submits, from where, and what may be looked at.
type ParseOptions struct {
	Filename string            // as the user wrote it, for messages
	Vars     map[string]string // --var name=value: text, read as the variable's type
	Dir      string            // absolute working directory of the submitter
	Home     string            // absolute home directory, for "~/"
	User     string            // login name
	Environ  []string          // the submitter's "NAME=value", for getenv
	Files    FileAccess        // how to look at files; nil: nothing is looked at, and every file is taken to be there
	Now      time.Time         // for start_after; its location is the user's time zone
	Defaults JobDefaults       // zero fields are filled from StandardDefaults
}

// FileAccess is how the package looks at the submitter's files, with the submitter's
// rights. Paths are absolute and clean.
type FileAccess interface {
	// Stat follows symbolic links. Its error wraps fs.ErrNotExist when nothing is there.
	Stat(path string) (fs.FileInfo, error)
	// Access returns nil when the user may read the file (and, with exec, may run it).
	Access(path string, exec bool) error
	// Glob returns the sorted paths that a pattern of path.Match matches.
	Glob(pattern string) ([]string, error)
	// Read returns a whole file, or an error when it has more than limit bytes.
	Read(path string, limit int64) ([]byte, error)
	// LookPath finds a program by its bare name along the user's PATH, as an absolute
	// path.
	LookPath(name string) (string, error)
}

// JobDefaults is what a job gets where it says nothing.
type JobDefaults struct {
	CPU      roost.MilliCPU
	Memory   roost.Bytes
	Disk     roost.Bytes
	Band     roost.PriorityBand // Free, the zero value, counts as unset
	Shell    string
	Transfer string        // "auto", "always" or "never"
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

// withDefaults returns d with its zero fields taken from StandardDefaults.
func (d JobDefaults) withDefaults() JobDefaults {
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
