package cgroup

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/containerd/cgroups/v3/cgroup1"

	"github.com/roost-batch/roost/internal/kernfs"
)

// make1 makes the directories of version 1, with those above them.
func (g *ClaimGroup) make1(l GroupLimits) error {
	_, err := cgroup1.New(cgroup1.StaticPath(g.path), l.version1(g.host.swap), cgroup1.WithHierarchy(g.host.hierarchy))
	if err == nil && g.isVersion1 {
		err = os.MkdirAll(g.taskDir, 0o755)
	}
	return err
}

func (g *ClaimGroup) set1(l GroupLimits) error {
	l.Devices = nil
	if err := g.raiseSwap(l); err != nil {
		return err
	}
	return g.update1(l)
}

// raiseSwap sets the limit of memory and swap together before that of memory is raised.
// The kernel refuses a limit of memory above it. The library writes both, in an order
// that is right for lower limits alone.
func (g *ClaimGroup) raiseSwap(l GroupLimits) error {
	path := filepath.Join(g.version1Dir("memory"), "memory.memsw.limit_in_bytes")
	if !g.host.swap || l.Memory == 0 || g.readSingle(path) >= l.memoryMax() {
		return nil
	}
	return kernfs.WriteFile(path, []byte(strconv.FormatInt(l.memoryMax(), 10)))
}

func (g *ClaimGroup) update1(l GroupLimits) error {
	c, err := cgroup1.Load(cgroup1.StaticPath(g.path), cgroup1.WithHierarchy(g.host.hierarchy))
	if err != nil {
		return err
	}
	return c.Update(l.version1(g.host.swap))
}

// hierarchy returns the hierarchies of version 1 in which limits are set. The freezer is
// left out, because it contains tasks and no starters.
func (h *ParentGroup) hierarchy() ([]cgroup1.Subsystem, error) {
	root := h.mounts.v1
	makers := []struct {
		name string
		make func() cgroup1.Subsystem
	}{
		{"cpu", func() cgroup1.Subsystem { return cgroup1.NewCpu(root) }},
		{"cpuacct", func() cgroup1.Subsystem { return cgroup1.NewCpuacct(root) }},
		{"cpuset", func() cgroup1.Subsystem { return cgroup1.NewCpuset(root) }},
		{"memory", func() cgroup1.Subsystem { return cgroup1.NewMemory(root, cgroup1.OptionalSwap()) }},
		{"devices", func() cgroup1.Subsystem { return cgroup1.NewDevices(root) }},
		{"pids", func() cgroup1.Subsystem { return cgroup1.NewPids(root) }},
		{"blkio", func() cgroup1.Subsystem { return cgroup1.NewBlkio(root) }},
	}
	var all []cgroup1.Subsystem
	for _, m := range makers {
		if h.v1[m.name] {
			all = append(all, m.make())
		}
	}
	return all, nil
}
