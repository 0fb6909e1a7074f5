package startd

import (
	"os"
	"path/filepath"
	"strings"
)

// Where a job is, its program finds in files beside its script: a line for each of its
// processes, with the name of their node, and one for each GPU.
const (
	nodesName = "nodes"
	gpusName  = "gpus"
)

// hostFile is one of these files, and the variable that names it.
type hostFile struct {
	name, variable string
	lines          []string
}

// hostFilesFor are those that an attempt is to find.
func hostFilesFor(a *claimAttempt) (list []hostFile) {
	if lines := a.program.GetNodeFile(); len(lines) > 0 {
		list = append(list, hostFile{nodesName, "PBS_NODEFILE", lines},
			hostFile{gpusName, "PBS_GPUFILE", a.program.GetGpuFile()})
	}
	return list
}

// writeHosts writes them, and opens what a job runs processes on its other machines by.
func (h *claimRunner) writeHosts(a *claimAttempt) error {
	if a.record.Reaches = len(a.program.GetNodeFile()) > 0; a.record.Reaches {
		if err := h.host.openSpawnSocket(a); err != nil {
			return err
		}
	}
	for _, f := range hostFilesFor(a) {
		if err := h.writeFile(filepath.Join(a.record.IO, f.name), f.text(), 0o400); err != nil {
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

// replaceHosts puts other files in the place of those that an attempt has, as its job has
// other machines now. What has one open reads it to its end as it was.
func (h *claimRunner) replaceHosts(a *claimAttempt, o hostFilesCmd) {
	if a.program != nil && len(a.program.GetNodeFile()) > 0 {
		a.program.NodeFile, a.program.GpuFile = o.nodes, o.gpus
	}
	if !a.record.Reaches { // it is to have none, or none yet
		return
	}
	for _, f := range []hostFile{{name: nodesName, lines: o.nodes}, {name: gpusName, lines: o.gpus}} {
		path := filepath.Join(a.record.IO, f.name)
		_ = os.Remove(path + ".new") // a startd before this one may have left it
		err := h.writeFile(path+".new", f.text(), 0o400)
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			h.host.log.Error("a job is not told which machines it has now", "attempt", a.label(), "error", err)
		}
	}
}

// hostFileVariables are the variables that name them, and tell programs of them that do
// not know those. given are those that the job came with.
func hostFileVariables(a *claimAttempt, given []string) (list []string) {
	for _, f := range hostFilesFor(a) {
		file := a.sandboxPath(filepath.Join(a.record.IO, f.name))
		if list = append(list, f.variable+"="+file); f.name == nodesName {
			list = append(list, mpiVariables(f.lines, file, given)...)
		}
	}
	if a.record.Reaches {
		list = append(list, "ROOST_REACH="+a.sandboxPath(filepath.Join(a.record.IO, spawnSocketName)))
	}
	return list
}
