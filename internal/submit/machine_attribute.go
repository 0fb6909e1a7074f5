package submit

import (
	"github.com/roost-batch/roost"
)

// attributeUnit says what a text means when it is compared with a machine attribute.
type attributeUnit int

const (
	unitText attributeUnit = iota // a text is a text
	unitMiB                       // a text is a size, in MiB
	unitKiB                       // a text is a size, in KiB
	unitRate                      // a text is a rate, in KiB per second
)

type machineAttribute struct {
	name      string // as written after "machine."
	attribute string
	unit      attributeUnit
}

// machineAttrs are the machine attributes with plain names. Any other name must be an
// attribute that an administrator has added to machine ads.
var machineAttrs = []machineAttribute{
	{"cpus", roost.AttrCpus, unitText},
	{"memory", roost.AttrMemory, unitMiB},
	{"disk", roost.AttrDisk, unitKiB},
	{"gpus", roost.AttrGpus, unitText},
	{"total_cpus", roost.AttrTotalCpus, unitText},
	{"total_memory", roost.AttrTotalMemory, unitMiB},
	{"total_disk", roost.AttrTotalDisk, unitKiB},
	{"total_gpus", roost.AttrTotalGpus, unitText},
	{"disk_io", roost.AttrDiskIO, unitRate},
	{"network", roost.AttrNetwork, unitRate},
	{"total_disk_io", roost.AttrTotalDiskIO, unitRate},
	{"total_network", roost.AttrTotalNetwork, unitRate},
	{"threads_per_core", roost.AttrThreadsPerCore, unitText},
	{"numa_nodes", roost.AttrNumaNodes, unitText},
	{"kflops", roost.AttrKFlops, unitText},
	{"mips", roost.AttrMips, unitText},
	{"arch", roost.AttrArch, unitText},
	{"os", roost.AttrOpSys, unitText},
	{"opsys", roost.AttrOpSys, unitText},
	{"name", roost.AttrName, unitText},
	{"host", roost.AttrMachine, unitText},
	{"machine", roost.AttrMachine, unitText},
	{"state", roost.AttrState, unitText},
	{"load_avg", roost.AttrLoadAvg, unitText},
	{"file_system_domain", roost.AttrFileSystemDomain, unitText},
	{"roost_version", roost.AttrVersion, unitText},
	{"num_claims", roost.AttrNumClaims, unitText},
	{"num_running", roost.AttrNumRunning, unitText},
}

// findMachineAttr finds an attribute by its name, ignoring case and underscores.
func findMachineAttr(name string) (machineAttribute, bool) {
	for _, m := range machineAttrs {
		if normalizeName(m.name) == normalizeName(name) {
			return m, true
		}
	}
	return machineAttribute{}, false
}

func machineAttrNames() []string {
	names := make([]string, len(machineAttrs))
	for i, m := range machineAttrs {
		names[i] = m.name
	}
	return names
}
