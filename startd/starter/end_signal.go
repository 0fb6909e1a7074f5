package starter

import (
	"bytes"
	"syscall"
)

// endSignal is the signal that a job of sbatch gets before the end of its walltime.
type endSignal struct{ *starterProcess }

// time returns when the signal is due; 0: never.
func (s endSignal) time() int64 {
	if o := &s.startCmd.EndSignal; o.Signal != 0 && !s.isEndSignalled && !s.stopping && s.walltime != 0 {
		return max(s.walltime-o.Before, 1)
	}
	return 0
}

// send sends it. A program whose sandbox is still being made gets it when it begins.
func (s endSignal) send() {
	s.isEndSignalled = true
	o := &s.startCmd.EndSignal
	switch signal := syscall.Signal(o.Signal); {
	case !o.ProgramOnly:
		s.signalSteps(signal)
	case s.sandboxReport >= 0:
		s.pendingSignals |= 1 << (signal - 1)
	default:
		s.signalProgram(signal)
	}
}

// signalSteps sends a signal to the processes of the job's steps. Neither its script gets
// it nor srun, as with Slurm. A variable in their environment tells them from others.
// Those that are not below us came by srun from another machine.
func (s endSignal) signalSteps(signal syscall.Signal) {
	tree, sent := s.listTree(), map[int]bool{}
	if s.group.dir != "" {
		for _, pid := range s.group.processes() {
			tree.add(listedProcess{pid, parentOf(pid)})
		}
	}
	for _, p := range tree.list {
		environment := readAll("/proc/" + itoa(p.pid) + "/environ")
		if !bytes.HasPrefix(environment, stepVariable[1:]) && !bytes.Contains(environment, stepVariable) {
			sent[p.pid] = true
		}
	}
	tree.signal(signal, sent)
}

// stepVariable is behind another variable in the environment of a step's process.
var stepVariable = []byte("\x00SLURM_STEP_ID=")
