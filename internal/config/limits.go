package config

import (
	"fmt"
	"strconv"
	"strings"
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
	// percent of its request that a task with memory slack may use beyond it while memory
	// is idle; 0: none may
	MemorySlack int
	IO          roost.IORates // rates of a task that asks for none; 0: it is not limited

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
	l.readSetting("memory_slack", "50", func(text string) error {
		n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
		if err != nil || n < 0 || n > maxMemorySlack {
			return fmt.Errorf("%s is not a percentage from 0 to %d", text, maxMemorySlack)
		}
		to.MemorySlack = n
		return nil
	})
	readByteRate(l, "task_disk_io", `"20MB/s"`, &to.IO.Disk)
	readByteRate(l, "task_network", `"100Mbit/s"`, &to.IO.Network)
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

// maxMemorySlack bounds the memory that a task may use beyond its request, in percent.
const maxMemorySlack = 1000

// readByteRate reads a rate of data.
func readByteRate(s *blockReader, name, example string, to *roost.ByteRate) {
	s.readSetting(name, example, func(text string) (err error) {
		*to, err = roost.ParseByteRate(text)
		return err
	})
}

func (w fileWriter) writeByteRate(name string, r roost.ByteRate) {
	if r != 0 {
		w.writeText(name, strconv.FormatInt(int64(r), 10)+"/s")
	}
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
	if l.MemorySlack != 0 {
		b.writeNumber("memory_slack", l.MemorySlack)
	}
	b.writeByteRate("task_disk_io", l.IO.Disk)
	b.writeByteRate("task_network", l.IO.Network)
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
