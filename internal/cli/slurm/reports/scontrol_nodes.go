package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// machines asks for the machines of the pool, by name.
func machines(c *frame.Invocation) ([]document.Node, error) {
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Machine"})
	if err != nil {
		return nil, err
	}
	nodes := make([]document.Node, 0, len(texts))
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, document.NodeOf(ad))
	}
	slices.SortFunc(nodes, func(a, b document.Node) int { return document.CompareNames(a.Name, b.Name) })
	return nodes, nil
}

// nodeState is the state of a machine in Slurm's words, in small letters.
func nodeState(n *document.Node) string {
	switch {
	case n.Drain != "" && n.Running+n.Claims > 0:
		return "draining"
	case n.Drain != "":
		return "drained"
	case n.Owner != "" && n.Running == 0:
		return "maint"
	case n.Running == 0 && n.Cpus.Free >= n.Cpus.Total:
		return "idle"
	case n.Cpus.Free <= 0:
		return "allocated"
	}
	return "mixed"
}

// wantsNode reports whether a machine is among those named, by its whole or short name.
func wantsNode(names []string, name string) bool {
	short, _, _ := strings.Cut(name, ".")
	return len(names) == 0 || slices.Contains(names, name) || slices.Contains(names, short)
}

// showNodes prints machines as scontrol show node does.
func (r *scontrolRun) showNodes(text string) error {
	wanted, err := hostlist.Expand(text)
	if err != nil {
		return r.exit("Invalid hostlist: " + text)
	}
	nodes, err := machines(r.Invocation)
	if err != nil {
		return failWith(r.Invocation, err)
	}
	var names []string
	for _, p := range partitions(r.Invocation) {
		names = append(names, p.name)
	}
	printed := 0
	for i := range nodes {
		if n := &nodes[i]; wantsNode(wanted, n.Name) {
			printed++
			r.printBlock(nodeLines(n, names))
		}
	}
	if printed == 0 && text != "" {
		fmt.Fprintf(r.Stdout, "Node %s not found\n", text)
		return frame.ExitError(failure)
	}
	return nil
}

// printBlock prints lines that belong together.
func (r *scontrolRun) printBlock(lines []string) {
	if r.oneLine {
		fmt.Fprintln(r.Stdout, strings.Join(lines, " "))
		return
	}
	fmt.Fprint(r.Stdout, strings.Join(lines, "\n   ")+"\n\n")
}

// wholeCPUs is a number of CPUs without a fraction.
func wholeCPUs(n float64) int64 { return int64(n) }

// allocatedTRES lists what jobs have of a machine.
func allocatedTRES(cpus, megabytes int64) string {
	if cpus <= 0 {
		return ""
	}
	return fmt.Sprintf("cpu=%d,mem=%dM", cpus, max(megabytes, 0))
}

// nodeLines are the lines of a machine, which is in the partitions of those names.
func nodeLines(n *document.Node, names []string) []string {
	short, _, _ := strings.Cut(n.Name, ".")
	total, free := wholeCPUs(float64(n.Cpus.Total)), wholeCPUs(float64(n.Cpus.Free))
	memory, freeMemory := int64(n.Memory.Total)>>20, int64(n.Memory.Free)>>20
	gres, tres := "(null)", fmt.Sprintf("cpu=%d,mem=%dM,billing=%d", total, memory, total)
	if gpus := int64(n.GPUs.Total); gpus > 0 {
		gres = fmt.Sprintf("gpu:%d", gpus)
		tres += fmt.Sprintf(",gres/gpu=%d", gpus)
	}
	lines := []string{
		fmt.Sprintf("NodeName=%s Arch=%s CoresPerSocket=%d", n.Name, strings.ToLower(n.Arch), max(total, 1)),
		fmt.Sprintf("CPUAlloc=%d CPUEfctv=%d CPUTot=%d CPULoad=%.2f", total-free, total, total, n.Load),
		"AvailableFeatures=(null)", "ActiveFeatures=(null)", "Gres=" + gres,
		fmt.Sprintf("NodeAddr=%s NodeHostName=%s Version=%s", n.Name, short, slurmVersion),
		"OS=" + n.OpSys,
		fmt.Sprintf("RealMemory=%d AllocMem=%d FreeMem=%d Sockets=1 Boards=1", memory, memory-freeMemory, freeMemory),
		fmt.Sprintf("State=%s ThreadsPerCore=1 TmpDisk=%d Weight=1 Owner=N/A MCS_label=N/A",
			strings.ToUpper(nodeState(n)), int64(n.Disk.Total)>>20),
		"Partitions=" + strings.Join(names, ","), "BootTime=None SlurmdStartTime=None", "CfgTRES=" + tres,
		"AllocTRES=" + allocatedTRES(total-free, memory-freeMemory),
	}
	if n.Drain != "" {
		lines = append(lines, "Reason="+document.PrintableText(n.Drain))
	}
	return lines
}

// showPartitions prints the queues as scontrol show partition does. All of them have all
// machines.
func (r *scontrolRun) showPartitions(name string) error {
	nodes, err := machines(r.Invocation)
	if err != nil {
		return failWith(r.Invocation, err)
	}
	var names []string
	cpus, memory := int64(0), int64(0)
	for i := range nodes {
		names = append(names, nodes[i].Name)
		cpus += wholeCPUs(float64(nodes[i].Cpus.Total))
		memory += int64(nodes[i].Memory.Total) >> 20
	}
	printed := 0
	for _, p := range partitions(r.Invocation) {
		if name != "" && name != p.name {
			continue
		}
		printed++
		isDefault := "NO"
		if p.isDefault {
			isDefault = "YES"
		}
		r.printBlock([]string{
			"PartitionName=" + p.name,
			"AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL", "AllocNodes=ALL Default=" + isDefault + " QoS=N/A",
			"DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
			"MaxNodes=UNLIMITED MaxTime=" + p.limit + " MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED",
			"Nodes=" + hostlist.Compress(names),
			"PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
			"OverTimeLimit=NONE PreemptMode=OFF",
			fmt.Sprintf("State=%s TotalCPUs=%d TotalNodes=%d SelectTypeParameters=NONE", p.state, cpus, len(names)),
			"JobDefaults=(null)", "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
			fmt.Sprintf("TRES=cpu=%d,mem=%dM,node=%d,billing=%d", cpus, memory, len(names), cpus),
		})
	}
	if printed == 0 {
		fmt.Fprintf(r.Stdout, "Partition %s not found\n", name)
		return frame.ExitError(failure)
	}
	return nil
}
