package claim

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/startd/slot"
)

// Cgroups makes the control groups of claims, named by their ids.
type Cgroups struct {
	host *cgroup.ParentGroup // nil: claims get none
	own  *config.StartdSettings
	log  *slog.Logger
	disk cgroup.BlockDevice // with the scratch directories
}

// OpenCgroups finds out what the machine can enforce, and refuses to go on where it must
// and cannot.
func OpenCgroups(own *config.StartdSettings, log *slog.Logger) (*Cgroups, error) {
	g := &Cgroups{own: own, log: log}
	g.disk, _ = cgroup.BlockDeviceOf(own.Dir)
	if own.Limits.Enforce == config.EnforceNever {
		return g, nil
	}
	host, err := OpenParentCgroup(own)
	if err != nil {
		return nil, fmt.Errorf("startd %s: %w", own.Name, err)
	}
	can := host.Enforcement()
	if own.Limits.Enforce == config.EnforceRequired && !(can.CPU && can.Memory && can.Pids) {
		return nil, fmt.Errorf("startd %s: %w: it must enforce limits, and this machine has %s (enforce = \"auto\" "+
			"goes without)",
			own.Name, roost.BadConfig, strings.Join(can.Missing, "; "))
	}
	for _, missing := range can.Missing {
		log.Warn("not everything can be enforced", "missing", missing)
	}
	if can.Version > 0 || can.Freeze {
		g.host = host
	}
	return g, nil
}

// OpenParentCgroup finds out what there is for the groups of a startd. On a machine with
// an owner they are below a directory of their own, which gives way to everything else
// on the machine. But where its policy has changed while tasks run, they stay where
// these are.
func OpenParentCgroup(own *config.StartdSettings) (*cgroup.ParentGroup, error) {
	plain, err := cgroup.Open(hostCgroupPaths[0] + CgroupName(own))
	if err != nil {
		return nil, err
	}
	yields, err := cgroup.Open(hostCgroupPaths[1] + CgroupName(own))
	if err != nil {
		return nil, err
	}
	host, other := plain, yields
	if own.NeedsGuard() {
		host, other = yields, plain
	}
	if other.HasGroups() {
		host = other
	}
	if own.NeedsGuard() {
		host.YieldToOwner()
	}
	return host, nil
}

// hostCgroupPaths are the groups above those of all startds of a host. The first is for
// machines that are nobody's, the second for those that have an owner.
var hostCgroupPaths = [...]string{"/roost", "/roost-yielding"}

func absoluteDir(own *config.StartdSettings) string {
	dir, err := filepath.Abs(own.Dir)
	if err != nil {
		return own.Dir
	}
	return dir
}

// CgroupName returns the group of a startd, in the one above. Several startds of one
// host may have the same name, of different pools: their directories tell them apart, or
// one would sweep away the other's tasks.
func CgroupName(own *config.StartdSettings) string {
	sum := sha256.Sum256([]byte(absoluteDir(own)))
	return "/" + own.Name[:min(len(own.Name), 64)] + "-" + hex.EncodeToString(sum[:4])
}

// Enforcement says what is enforced.
func (g *Cgroups) Enforcement() cgroup.Enforcement {
	if g.host == nil {
		return cgroup.Enforcement{}
	}
	return g.host.Enforcement()
}

// Describe says in the machine's ad what is enforced.
func (g *Cgroups) Describe(ad *classad.Ad) {
	can := g.Enforcement()
	ad.SetInt(roost.AttrCgroupVersion, int64(can.Version))
	ad.SetStrings(roost.AttrEnforces, can.Names())
}

// create makes the group of a claim; nil where there are none. Unless limits must be, a
// claim goes without rather than not at all. Where the machine has GPUs its tasks may
// open only those devices, and what every program has a use for.
func (g *Cgroups) create(file File, devices []cgroup.DeviceNode) (*cgroup.ClaimGroup, error) {
	if g.host == nil {
		return nil, nil
	}
	limits := limitsOf(file, g.own)
	limits.Devices = devices
	group, err := g.parent(file).MakeGroup(slot.ClaimID(file.ID).String(), limits)
	if err != nil && g.own.Limits.Enforce != config.EnforceRequired {
		g.log.Error("a claim goes without limits", "claim", file.ID, "err", err)
		return nil, nil
	}
	g.limitIO(group, file)
	return group, err
}

// limitIO limits the I/O of a claim on the disk with the scratch directories. A claim
// whose I/O cannot be limited goes without: its rate is taken of the machine anyway.
func (g *Cgroups) limitIO(group *cgroup.ClaimGroup, file File) {
	rate := cmp.Or(file.Resources.IO.Disk, g.own.Limits.IO.Disk)
	if group == nil || rate == 0 || file.About.Alone {
		return
	}
	if err := group.LimitIO(g.disk, rate); err != nil {
		g.log.Warn("the disk I/O of a claim is not limited", "claim", file.ID, "err", err)
	}
}

// createSpare makes the group of a claim that is not there yet, without limits.
func (g *Cgroups) createSpare(id slot.ClaimID) (*cgroup.ClaimGroup, error) {
	if g.host == nil {
		return nil, nil
	}
	return g.host.MakeGroup(id.String(), cgroup.GroupLimits{})
}

// limitSpare sets the limits of a group that was made before its claim.
func (g *Cgroups) limitSpare(group *cgroup.ClaimGroup, file File, devices []cgroup.DeviceNode) error {
	if group == nil {
		return nil
	}
	g.limitIO(group, file)
	return errors.Join(group.SetLimits(limitsOf(file, g.own)), group.RestrictDevices(devices))
}

// find returns the group of a claim of an earlier start, if there is one.
func (g *Cgroups) find(file File) *cgroup.ClaimGroup {
	if g.host == nil {
		return nil
	}
	group, _ := g.parent(file).FindGroup(slot.ClaimID(file.ID).String())
	return group
}

// parent returns where the group of a claim is: below that of the startd, or of its
// alloc.
func (g *Cgroups) parent(file File) *cgroup.ParentGroup {
	if file.Inside == 0 {
		return g.host
	}
	return g.host.Inside(slot.ClaimID(file.Inside).String())
}

// Sweep removes the groups of claims that are no more.
func (g *Cgroups) Sweep(wanted map[string]bool) {
	if g.host == nil {
		return
	}
	if err := g.host.Sweep(wanted); err != nil {
		g.log.Error("control groups are left", "err", err)
	}
}

// Expedite has tasks that are to be suspended come to rest at once, or ends that.
func (g *Cgroups) Expedite(on bool) {
	if g.host != nil {
		g.host.SuspendYielding(on)
	}
}

// SetCPUMax limits the CPU time of all tasks together; 0: to what there is. What each of
// them was given is no limit of what it uses of what others leave.
func (g *Cgroups) SetCPUMax(cpu roost.MilliCPU) {
	if g.host == nil {
		return
	}
	if err := g.host.SetCPUMax(cpu); err != nil {
		g.log.Warn("tasks are not held to the cores that are lent", "err", err)
	}
}

// Close removes the startd's own group, if no claim has one.
func (g *Cgroups) Close() {
	if g.host != nil {
		g.host.Close()
	}
}

// What CPU time goes by when it is short: a core of a batch task weighs this much, and
// one of a stream task fifty times that, so that it has its time at once and batch work
// fills what is left. A whole machine of 500 cores is still within what the kernel takes.
// One in reclaimed room has what they all leave.
const (
	reclaimedWeight = 1
	batchWeight     = 20
	streamWeight    = 1000
)

// limitsOf is what a claim's tasks may use: what was asked for.
func limitsOf(file File, own *config.StartdSettings) cgroup.GroupLimits {
	l := cgroup.GroupLimits{
		Weight: weightOf(file.Resources.CPU, coreWeight(file)), Cores: file.Cores, Memory: file.Resources.Memory,
		Pids: own.Limits.Processes,
	}
	if file.hasCPUQuota(own) {
		l.Quota = file.Resources.CPU
	}
	if file.Slack > 0 {
		l.Memory, l.SoftMemory = l.Memory+file.Slack, l.Memory
	}
	if file.About.Alloc { // of each claim inside the processes are bounded, and each has a starter
		l.Pids, l.InnerGroups = 0, slot.MaxInside
	}
	return l
}

// hasCPUQuota reports whether the claim never gets more CPU time than it asked for. The
// node's owner or the job wants that.
func (f *File) hasCPUQuota(own *config.StartdSettings) bool {
	return own.Limits.CPU || f.About.NoCPUSlack
}

// coreWeight is what a core of the claim weighs.
func coreWeight(file File) roost.MilliCPU {
	switch {
	case file.isReclaimed():
		return reclaimedWeight
	case file.Class == gpu.StreamClass:
		return streamWeight
	}
	return batchWeight
}

func weightOf(cpu, each roost.MilliCPU) int { return int(max(cpu*each/1000, 1)) }

// cgroupJoin is what a starter is told of its claim's group.
func (h *Runner) cgroupJoin() (join func(pid int) error, tasks string) {
	if h.group == nil {
		return nil, ""
	}
	return h.group.Add, h.group.TaskDir()
}

// removeCgroup removes the claim's group, with all that is still in it.
func (h *Runner) removeCgroup() {
	h.ownerSuspension.detach()
	if h.group == nil {
		return
	}
	if err := h.group.Delete(); err != nil {
		h.machine.log.Error("processes are left", "claim", h.id, "err", err)
	}
	h.group = nil
}
