package shell

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// resourceLimit is a resource limit of setrlimit(2).
type resourceLimit struct {
	Resource  int
	Soft, Max uint64
}

// limitNames lists the lines of /proc/PID/limits, in the order of the kernel's numbers.
func limitNames() []string {
	return []string{
		"Max cpu time", "Max file size", "Max data size", "Max stack size", "Max core file size", "Max resident set",
		"Max processes", "Max open files",
		"Max locked memory", "Max address space", "Max file locks", "Max pending signals", "Max msgqueue size",
		"Max nice priority",
		"Max realtime priority", "Max realtime timeout",
	}
}

// readLimits reads the limits of a process from a file that everybody may read. For
// another user's process prlimit(2) would need CAP_SYS_RESOURCE, which root in a
// container often lacks.
func readLimits(pid int) ([]resourceLimit, error) {
	text, err := os.ReadFile(procFile(pid, "limits"))
	if err != nil {
		return nil, err
	}
	return parseLimits(string(text)), nil
}

func parseLimits(text string) (list []resourceLimit) {
	names := limitNames()
	for line := range strings.SplitSeq(text, "\n") {
		for number, name := range names {
			rest, ok := strings.CutPrefix(line, name+" ")
			fields := strings.Fields(rest)
			if !ok || len(fields) < 2 {
				continue
			}
			soft, serr := limitValue(fields[0])
			hard, herr := limitValue(fields[1])
			if serr == nil && herr == nil {
				list = append(list, resourceLimit{number, soft, hard})
			}
		}
	}
	return list
}

func limitValue(text string) (uint64, error) {
	if text == "unlimited" {
		return unix.RLIM_INFINITY, nil
	}
	return strconv.ParseUint(text, 10, 64)
}
