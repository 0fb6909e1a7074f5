package config

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// Limits says what a startd makes of what its tasks asked for.
type Limits struct {
	Enforce   Enforcement
	Sandbox   Enforcement // whether tasks are shut in namespaces of their own
	CPU       bool        // a task never gets more CPU time than it asked for, even when the machine is idle
	Processes int         // the most processes and threads of a task

	TaskDisk   roost.Bytes // that a task may use which asks for none; 0: a tenth of what the startd hands out
	TaskFiles  int         // files and directories of a task; 0: a million, and no more than a tenth of what the file system can have
	TaskOutput roost.Bytes // of one task's captured output; 0: 1 GiB, and no more than a tenth of the disk that the startd hands out

	Reclaim      roost.Reclaim // how boldly what tasks asked for and do not use is lent to batch and free work
	ReclaimAfter time.Duration // from a task's start on, nothing of it is lent for so long; 0: the usual time
}

// Enforcement says how much it matters that something is done.
type Enforcement string

// The ways.
const (
	EnforceAuto  Enforcement = "auto"  // as far as the machine can
	EnforceNever Enforcement = "never" // not at all
	EnforceMust  Enforcement = "must"  // a startd that cannot does not start
)

// defaultProcesses is far above what programs need, a Java machine with a thread for each of many cores included, and far below what the
// smallest machines have (pid_max is 32768 there): a fork bomb harms its own task only.
const defaultProcesses = 8192

func (l *Limits) fill() {
	if l.Enforce == "" {
		l.Enforce = EnforceAuto
	}
	if l.Sandbox == "" {
		l.Sandbox = EnforceAuto
	}
	if l.Processes == 0 {
		l.Processes = defaultProcesses
	}
}

func (s *section) readLimits(b *hclsyntax.Block, to *Limits) {
	l := s.inside(b)
	l.enforcement("enforce", &to.Enforce)
	l.enforcement("sandbox", &to.Sandbox)
	l.truth("cpu_limit", &to.CPU)
	l.count("max_processes", &to.Processes)
	l.size("task_disk", `"20GiB"`, &to.TaskDisk)
	l.count("task_files", &to.TaskFiles)
	l.size("task_output", `"1GiB"`, &to.TaskOutput)
	l.set("reclaim", `"medium"`, func(text string) (err error) {
		to.Reclaim, err = roost.ParseReclaim(text)
		return err
	})
	l.duration("reclaim_after", `"5m"`, &to.ReclaimAfter)
	l.done()
}

func (s *section) enforcement(name string, to *Enforcement) {
	s.set(name, `"auto"`, func(text string) error {
		switch *to = Enforcement(text); *to {
		case EnforceAuto, EnforceNever, EnforceMust:
			return nil
		}
		return fmt.Errorf("%q is none of \"auto\", \"never\" and \"must\"", text)
	})
}

func (w writer) limits(l Limits) {
	if l == (Limits{}) {
		return
	}
	b := w.block("limits")
	b.text("enforce", string(l.Enforce))
	b.text("sandbox", string(l.Sandbox))
	b.truth("cpu_limit", l.CPU)
	if l.Processes != 0 {
		b.to.SetAttributeValue("max_processes", cty.NumberIntVal(int64(l.Processes)))
	}
	b.size("task_disk", l.TaskDisk)
	if l.TaskFiles != 0 {
		b.to.SetAttributeValue("task_files", cty.NumberIntVal(int64(l.TaskFiles)))
	}
	b.size("task_output", l.TaskOutput)
	if l.Reclaim != roost.ReclaimOff {
		b.text("reclaim", l.Reclaim.String())
	}
	b.duration("reclaim_after", l.ReclaimAfter)
}
