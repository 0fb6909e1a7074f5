package transfer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job of qsub finds where it is in two files, PBS_NODEFILE and PBS_GPUFILE
// (pbs_environment of OpenPBS, and Torque's), and in variables that say how many lines
// and hosts there are.

// pbsNodeFile is a line for each process that the job is to have, with the name of its
// node.
func pbsNodeFile(hosts []queue.HostProcesses) (lines []string) {
	for _, h := range hosts {
		for range h.Processes {
			lines = append(lines, h.Node)
		}
	}
	return lines
}

// pbsGPUFile is a line for each GPU that the job has, as in "node-gpu0".
func (t *FileTransfers) pbsGPUFile(hosts []queue.HostProcesses) (lines []string) {
	for _, h := range hosts {
		for _, g := range codec.DecodePlacement(t.dispatch.Placement(h.Attempt)).GetGpus() {
			// a share of it may be there twice
			if line := fmt.Sprintf("%s-gpu%d", h.Node, g.GetIndex()); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// hostVariables sets the variables in an environment that say which of its job's hosts
// this is. They are known only when the job's nodes are.
func hostVariables(environment []string, p queue.TaskProgram) {
	if len(p.Peers) < 2 {
		return
	}
	seen := []string{}
	for _, node := range p.Peers[:p.Rank+1] {
		if !slices.Contains(seen, node) {
			seen = append(seen, node)
		}
	}
	for i, v := range environment {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "PBS_NODENUM":
			environment[i] = fmt.Sprintf("%s=%d", name, slices.Index(seen, p.Peers[p.Rank]))
		case "PBS_VNODENUM":
			environment[i] = fmt.Sprintf("%s=%d", name, p.Rank)
		}
	}
}

// HostFiles returns the files that name the machines of an attempt's job; nil without
// any.
func (t *FileTransfers) HostFiles(a roost.AttemptID, hosts []queue.HostProcesses) *wire.HostFiles {
	if len(hosts) == 0 {
		return nil
	}
	return &wire.HostFiles{Attempt: codec.AttemptRef(a), NodeFile: pbsNodeFile(hosts), GpuFile: t.pbsGPUFile(hosts)}
}
