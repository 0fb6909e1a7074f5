package config

import (
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// LimitSettings configures how a startd enforces what its tasks requested.
type LimitSettings struct {
	Enforce   EnforcementLevel
	Sandbox   EnforcementLevel // whether tasks run in a sandbox
	CPU       bool             // a task never gets more CPU than it requested, even if the machine is idle
	Processes int              // the most processes and threads of a task

	TaskDisk roost.Bytes // default disk of a task; 0: a tenth of the disk that the startd offers
	// files and directories of a task; 0: a million, and at most a tenth of the file
	// system's limit
	TaskFiles int
	// captured output of one task; 0: 1 GiB, and at most a tenth of the disk that the
	// startd offers
	TaskOutput roost.Bytes

	Reclaim      roost.ReclaimLevel // how much of what tasks requested and do not use goes to batch and free work
	ReclaimAfter time.Duration      // time from a task's start during which nothing of it is reclaimed; 0: the default
}

// EnforcementLevel states how necessary a limit is.
type EnforcementLevel string

// The values of EnforcementLevel.
const (
	EnforceAuto     EnforcementLevel = "auto"  // as far as the machine can
	EnforceNever    EnforcementLevel = "never" // not at all
	EnforceRequired EnforcementLevel = "must"  // a startd that cannot enforce it does not start
)

// defaultProcesses is far above what programs need, even a Java program with a thread for
// each of many cores. It is far below the limit of the smallest machines (pid_max is
// 32768 there), so that a fork bomb harms only its own task.
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
		b.writeNumber("max_processes", l.Processes)
	}
	b.writeSize("task_disk", l.TaskDisk)
	if l.TaskFiles != 0 {
		b.writeNumber("task_files", l.TaskFiles)
	}
	b.writeSize("task_output", l.TaskOutput)
	if l.Reclaim != roost.ReclaimOff {
		b.writeText("reclaim", l.Reclaim.String())
	}
	b.writeDuration("reclaim_after", l.ReclaimAfter)
}
