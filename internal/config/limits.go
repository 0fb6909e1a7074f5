package config

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// LimitSettings says what a startd makes of what its tasks asked for.
type LimitSettings struct {
	Enforce   EnforcementLevel
	Sandbox   EnforcementLevel // whether tasks are shut in namespaces of their own
	CPU       bool             // a task never gets more CPU time than it asked for, even when the machine is idle
	Processes int              // the most processes and threads of a task

	TaskDisk roost.Bytes // that a task may use which asks for none; 0: a tenth of what the startd hands out
	// files and directories of a task; 0: a million, and no more than a tenth of what the
	// file system can have
	TaskFiles int
	// of one task's captured output; 0: 1 GiB, and no more than a tenth of the disk that
	// the startd hands out
	TaskOutput roost.Bytes

	Reclaim      roost.ReclaimLevel // how boldly what tasks asked for and do not use is lent to batch and free work
	ReclaimAfter time.Duration      // from a task's start on, nothing of it is lent for so long; 0: the usual time
}

// EnforcementLevel says how much it matters that something is done.
type EnforcementLevel string

// The ways.
const (
	EnforceAuto     EnforcementLevel = "auto"  // as far as the machine can
	EnforceNever    EnforcementLevel = "never" // not at all
	EnforceRequired EnforcementLevel = "must"  // a startd that cannot does not start
)

// defaultProcesses is far above what programs need, a Java machine with a thread for each
// of many cores included, and far below what the smallest machines have (pid_max is 32768
// there): a fork bomb harms its own task only.
const defaultProcesses = 8192

func (l *LimitSettings) fillDefaults() {
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

func (s *blockReader) readLimits(b *hclsyntax.Block, to *LimitSettings) {
	l := s.innerBlock(b)
	l.readEnforcement("enforce", &to.Enforce)
	l.readEnforcement("sandbox", &to.Sandbox)
	l.readBool("cpu_limit", &to.CPU)
	l.readCount("max_processes", &to.Processes)
	l.readSize("task_disk", `"20GiB"`, &to.TaskDisk)
	l.readCount("task_files", &to.TaskFiles)
	l.readSize("task_output", `"1GiB"`, &to.TaskOutput)
	l.readSetting("reclaim", `"medium"`, func(text string) (err error) {
		to.Reclaim, err = roost.ParseReclaimLevel(text)
		return err
	})
	l.readDuration("reclaim_after", `"5m"`, &to.ReclaimAfter)
	l.reportUnknown()
}

func (s *blockReader) readEnforcement(name string, to *EnforcementLevel) {
	s.readSetting(name, `"auto"`, func(text string) error {
		switch *to = EnforcementLevel(text); *to {
		case EnforceAuto, EnforceNever, EnforceRequired:
			return nil
		}
		return fmt.Errorf("%q is none of \"auto\", \"never\" and \"must\"", text)
	})
}

func (w fileWriter) writeLimits(l LimitSettings) {
	if l == (LimitSettings{}) {
		return
	}
	b := w.writeBlock("limits")
	b.writeText("enforce", string(l.Enforce))
	b.writeText("sandbox", string(l.Sandbox))
	b.writeBool("cpu_limit", l.CPU)
	if l.Processes != 0 {
		b.to.SetAttributeValue("max_processes", cty.NumberIntVal(int64(l.Processes)))
	}
	b.writeSize("task_disk", l.TaskDisk)
	if l.TaskFiles != 0 {
		b.to.SetAttributeValue("task_files", cty.NumberIntVal(int64(l.TaskFiles)))
	}
	b.writeSize("task_output", l.TaskOutput)
	if l.Reclaim != roost.ReclaimOff {
		b.writeText("reclaim", l.Reclaim.String())
	}
	b.writeDuration("reclaim_after", l.ReclaimAfter)
}
