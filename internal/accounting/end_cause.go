package accounting

import "fmt"

// causeNames are the names of the causes, by number.
var causeNames = [...]string{"running", "exit", "walltime", "removed", "vacated", "lease", "launch", "machine",
	"memory", "gpu-memory", "disk", "restore", "preempted", "cpu-time", "virtual-memory", "prologue"}

// String returns the name of the cause in reports.
func (c EndCause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("cause %d", uint8(c))
}
