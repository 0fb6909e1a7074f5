package submit

import (
	"github.com/roost-batch/roost"
)

// unit says what a text compared with an attribute of a machine means.
type unit int

const (
	plain    unit = iota // a text is a text
	mebibyte             // a text is a size, in MiB
	kibibyte             // a text is a size, in KiB
)

type machineAttr struct {
	name string // as written behind "machine."
	attr string
	unit unit
}

// machineAttrs are the attributes of machines that can be had by a plain name. Any other name is taken to be that of an
// attribute that an administrator has put into the machines' ads.
var machineAttrs = []machineAttr{
	{"cpus", roost.AttrCpus, plain},
	{"memory", roost.AttrMemory, mebibyte},
	{"disk", roost.AttrDisk, kibibyte},
	{"gpus", roost.AttrGpus, plain},
	{"total_cpus", roost.AttrTotalCpus, plain},
	{"total_memory", roost.AttrTotalMemory, mebibyte},
	{"total_disk", roost.AttrTotalDisk, kibibyte},
	{"total_gpus", roost.AttrTotalGpus, plain},
	{"arch", roost.AttrArch, plain},
	{"os", roost.AttrOpSys, plain},
	{"opsys", roost.AttrOpSys, plain},
	{"name", roost.AttrName, plain},
	{"host", roost.AttrMachine, plain},
	{"machine", roost.AttrMachine, plain},
	{"state", roost.AttrState, plain},
	{"load_avg", roost.AttrLoadAvg, plain},
	{"file_system_domain", roost.AttrFileSystemDomain, plain},
	{"roost_version", roost.AttrVersion, plain},
	{"num_claims", roost.AttrNumClaims, plain},
	{"num_running", roost.AttrNumRunning, plain},
}

// machineAttrOf finds an attribute by its name, whatever its case and underscores.
func machineAttrOf(name string) (machineAttr, bool) {
	for _, m := range machineAttrs {
		if squeeze(m.name) == squeeze(name) {
			return m, true
		}
	}
	return machineAttr{}, false
}

func machineAttrNames() []string {
	names := make([]string, len(machineAttrs))
	for i, m := range machineAttrs {
		names[i] = m.name
	}
	return names
}
