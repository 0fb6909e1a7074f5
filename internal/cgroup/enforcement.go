package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/kernfs"
)

// Enforcement states which limits a machine can enforce, and which not.
type Enforcement struct {
	Version int  // version of the control groups with the limits: 1 or 2; 0: none
	CPU     bool // CPU weights and quotas
	Cpuset  bool
	Memory  bool
	Devices bool
	Pids    bool
	IO      bool // I/O is measured

	IOLimits bool // the rate of I/O can be limited

	Freeze bool
	Kill   bool // all processes of a task can be killed at once

	Missing []string // a sentence for each missing feature, with advice
}

// Names lists what can be enforced, in the names of the machine ad.
func (c Enforcement) Names() []string {
	var names []string
	for _, n := range c.enforceables() {
		if n.supported {
			names = append(names, n.name)
		}
	}
	return names
}

// enforceable is one limit that a machine can enforce. It has the name of the limit in
// the machine ad, and of its controller in version 1.
type enforceable struct {
	name, controller, mechanism string
	supported                   bool
}

func (c Enforcement) enforceables() []enforceable {
	return []enforceable{
		{"cpu", "cpu", "shares of CPU time", c.CPU}, {"cpuset", "cpuset", "sets of cores", c.Cpuset},
		{"memory", "memory", "limits of memory", c.Memory},
		{"devices", "devices", "isolation of devices", c.Devices}, {"pids", "pids", "limits of processes", c.Pids},
		{"freeze", "freezer", "freezing", c.Freeze}, {"io", "blkio", "limits of disk I/O", c.IOLimits},
	}
}

// detect finds out what is available below parent, and changes nothing.
func (h *ParentGroup) detect() {
	base, why := h.mounts.baseDir()
	if base != "" {
		h.taskBase = filepath.Join(base, h.parent)
		h.enforcement.Freeze, h.enforcement.Kill = true, true
	}
	if len(h.mounts.version1Controllers) > 0 {
		h.enforcement.Version = 1
		why = h.detectVersion1()
	} else if base != "" {
		h.enforcement.Version = 2
		h.detectVersion2(base)
	}
	h.detectIOLimits()
	h.enforcement.Missing = h.missingReasons(why)
}

// detectVersion1 finds the hierarchies of version 1 that this process may use.
func (h *ParentGroup) detectVersion1() (why error) {
	may := map[string]bool{}
	for _, name := range controllers() {
		if !h.mounts.version1Controllers[name] {
			continue
		}
		if err := writeError(filepath.Join(h.mounts.v1, name)); err != nil {
			why = err
			continue
		}
		may[name] = true
	}
	h.v1 = may
	h.enforcement.CPU, h.enforcement.Cpuset, h.enforcement.Memory, h.enforcement.Devices = may["cpu"], may["cpuset"],
		may["memory"], may["devices"]
	h.enforcement.Pids, h.enforcement.IO = may["pids"], may["blkio"]
	if may["freezer"] {
		h.enforcement.Freeze, h.enforcement.Kill = true, true
	}
	if len(may) == 0 {
		h.enforcement.Version = 0
	}
	_, err := os.Stat(filepath.Join(h.mounts.v1, "memory", "memory.memsw.limit_in_bytes"))
	h.swap = err == nil
	return why
}

// detectVersion2 finds the controllers available in a directory of version 2.
func (h *ParentGroup) detectVersion2(base string) {
	text, _ := kernfs.ReadFile(filepath.Join(base, "cgroup.controllers"))
	offered := strings.Fields(string(text))
	has := func(name string) bool { return slices.Contains(offered, name) }
	h.enforcement.CPU, h.enforcement.Cpuset, h.enforcement.Memory, h.enforcement.Pids, h.enforcement.IO = has("cpu"),
		has("cpuset"), has("memory"), has("pids"), has("io")
	h.enforcement.Devices = os.Geteuid() == 0 // a BPF program, which only root may load
	_, err := os.Stat("/proc/swaps")
	h.swap = err == nil
	if len(offered) == 0 && !h.enforcement.Devices {
		h.enforcement.Version = 0
	}
}

// missingReasons describes the missing features. Features with one cause share a
// sentence.
func (h *ParentGroup) missingReasons(why error) []string {
	var unmounted, forbidden []string
	for _, a := range h.enforcement.enforceables() {
		switch {
		case a.supported:
		case why != nil && (len(h.mounts.version1Controllers) == 0 || h.mounts.version1Controllers[a.controller]):
			forbidden = append(forbidden, a.mechanism)
		case h.enforcement.Version == 0 && why == nil:
			unmounted = append(unmounted, a.mechanism)
		case a.name == "devices":
			forbidden = append(forbidden, a.mechanism)
		default:
			unmounted = append(unmounted, a.mechanism)
		}
	}
	var all []string
	if len(unmounted) > 0 {
		all = append(all, fmt.Sprintf("no %s: the kernel does not offer them here; mount the control groups (systemd "+
			"does), and look in %s for one that was switched off (cgroup_enable=memory)",
			strings.Join(unmounted, ", "), "/proc/cgroups"))
	}
	if len(forbidden) > 0 {
		all = append(all, fmt.Sprintf("no %s: %s; %s", strings.Join(forbidden, ", "), causeOf(why), cureOf(why)))
	}
	return all
}

func causeOf(why error) string {
	if why == nil {
		return "only root may do that"
	}
	return "this user may not " + why.Error()
}

func cureOf(why error) string {
	if errors.Is(why, unix.EROFS) {
		return "the control groups are mounted read-only, as in a container: give it a writable mount"
	}
	if os.Geteuid() == 0 {
		return "the process lacks the rights over the control groups, as in a container: give it a part of the tree"
	}
	return "run the startd as root, or let systemd give it a part of the tree (Delegate=yes)"
}
