package claim

import (
	"path/filepath"
	"strings"
)

// Where a job is, its program finds in files beside its script: a line for each of its
// processes, with the name of their node, and one for each GPU.
const (
	nodesName = "nodes"
	gpusName  = "gpus"
)

// SpawnSocketName is the name of the socket by which a task has something run on other
// machines of its job. It lies in the directory of the attempt's streams.
const SpawnSocketName = "reach"

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
	}
	for _, f := range hostFilesFor(a) {
		text := strings.Join(append(f.lines, ""), "\n")
		if len(f.lines) == 0 {
			text = ""
		}
		if err := h.dirs.writeFile(filepath.Join(a.record.IO, f.name), text, 0o400); err != nil {
			return err
		}
	}
	return nil
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
