package claim

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost/internal/pmi"
	"github.com/roost-batch/roost/startd/ranks"
)

// Where a job is, its program finds in files beside its script: a line for each of its
// processes, with the name of their node, and one for each GPU.
const (
	nodesName = "nodes"
	gpusName  = "gpus"
)

// StepsName is the name of the file in which a job's steps share its processors out. It
// lies there, too, and belongs to the job's user (package internal/slurm/steptable).
const StepsName = "steps"

// StepLogName is the name of the file in which the job's steps say what they are and how
// they ended. It lies there, too, and belongs to the user.
const StepLogName = "steps.log"

// SpawnSocketName is the name of the socket by which a task has something run on other
// machines of its job. It lies in the directory of the attempt's streams.
const SpawnSocketName = "reach"

// RanksSocketName is the name of the socket of a task's ranks. By it they exchange keys
// with those of the other tasks of the gang.
const RanksSocketName = ranks.SocketName

// ranksProgram is the name of the program that starts ranks. It lies beside the starter.
const ranksProgram = "roost-ranks"

// ranksCommand returns the command line of the program that starts the ranks of a task
// and waits for them.
func (h launcher) ranksCommand(a *Attempt, program []string) []string {
	r := a.program.GetMpi()
	arguments := ranks.Arguments{
		NodeSpec: pmi.NodeSpec{KVSName: r.GetKvsName(), FirstRank: int(r.GetFirstRank()), Ranks: int(r.GetRanks()),
			Size: int(r.GetSize()), Nodes: int(r.GetNodes())},
		Socket:  a.sandboxPath(filepath.Join(a.record.IO, RanksSocketName)),
		Program: program,
	}
	return arguments.Command(filepath.Join(filepath.Dir(h.machine.starterPath), ranksProgram))
}

// hostFile is one of these files, and the variable that names it.
type hostFile struct {
	name, variable string
	lines          []string
}

// hostFilesFor are those that an attempt is to find.
func hostFilesFor(a *Attempt) (list []hostFile) {
	if lines := a.program.GetNodeFile(); len(lines) > 0 {
		list = append(list, hostFile{nodesName, "PBS_NODEFILE", lines},
			hostFile{gpusName, "PBS_GPUFILE", a.program.GetGpuFile()})
	}
	return list
}

// writeHosts writes them, and opens what a job runs processes on its other machines by.
func (h launcher) writeHosts(a *Attempt) error {
	if a.record.Reaches = len(a.program.GetNodeFile()) > 0; a.record.Reaches {
		if err := h.machine.host.OpenSpawnSocket(a); err != nil {
			return err
		}
		for _, name := range []string{StepsName, StepLogName} {
			if err := h.dirs.writeFile(filepath.Join(a.record.IO, name), "", 0o600); err != nil {
				return err
			}
		}
	}
	for _, f := range hostFilesFor(a) {
		if err := h.dirs.writeFile(filepath.Join(a.record.IO, f.name), f.text(), 0o400); err != nil {
			return err
		}
	}
	return nil
}

// text is what the file says.
func (f hostFile) text() string {
	if len(f.lines) == 0 {
		return ""
	}
	return strings.Join(f.lines, "\n") + "\n"
}

// replaceHosts replaces the files of an attempt whose job has other machines now. A
// process that has one open reads the old one to its end.
func (h launcher) replaceHosts(a *Attempt, o HostFilesCmd) {
	if a.program != nil && len(a.program.GetNodeFile()) > 0 {
		a.program.NodeFile, a.program.GpuFile = o.Nodes, o.GPUs
	}
	if !a.record.Reaches { // it is to have none, or none yet
		return
	}
	for _, f := range []hostFile{{name: nodesName, lines: o.Nodes}, {name: gpusName, lines: o.GPUs}} {
		path := filepath.Join(a.record.IO, f.name)
		_ = os.Remove(path + ".new") // a startd before this one may have left it
		err := h.dirs.writeFile(path+".new", f.text(), 0o400)
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			h.machine.log.Error("the files that name the machines of a job cannot be replaced", "attempt", a.Label(),
				"error", err)
		}
	}
}

// hostFileVariables are the variables that name them, and tell programs of them that do
// not know those. given are those that the job came with.
func hostFileVariables(a *Attempt, given []string) (list []string) {
	for _, f := range hostFilesFor(a) {
		file := a.sandboxPath(filepath.Join(a.record.IO, f.name))
		if list = append(list, f.variable+"="+file); f.name == nodesName {
			list = append(list, mpiVariables(f.lines, file, given)...)
		}
	}
	if a.record.Reaches {
		list = append(list, "ROOST_REACH="+a.sandboxPath(filepath.Join(a.record.IO, SpawnSocketName)))
	}
	return list
}

// reopenSpawnSocket listens again for an attempt that an earlier start has begun.
func (h *Runner) reopenSpawnSocket(a *Attempt) {
	if !a.record.Reaches {
		return
	}
	if err := h.machine.host.OpenSpawnSocket(a); err != nil {
		h.machine.log.Error("a job cannot reach its other machines", "attempt", a.Label(), "err", err)
	}
}
