package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
)

// Amounts of a node that nobody has stated: large enough for each task.
const (
	unknownCPU    = roost.MilliCPU(1_000_000)
	unknownMemory = 64 * roost.TiB
	unknownDisk   = 1024 * roost.TiB
)

// hasLearnt reports whether a pilot has shown what the nodes are like.
func (p *Provider) hasLearnt() bool {
	return p.History.Learnt != "" && p.History.LearntOf == p.ShapeDigest()
}

// nodeAd returns the ad that a pilot would have. Requirements may name these attributes.
func (p *Provider) nodeAd() *classad.Ad {
	ad := p.knownAd()
	ad.SetString(roost.AttrPilotKey, "to come")
	ad.SetString(roost.AttrPilotProvider, p.Name)
	return ad
}

// knownAd returns the ad of the first pilot, or what the settings say. Amounts that are
// not known are huge.
func (p *Provider) knownAd() *classad.Ad {
	if p.hasLearnt() {
		if ad, err := classad.Parse(p.History.Learnt); err == nil {
			return ad
		}
	}
	ad, r := classad.New(), p.Node.Resources
	orUnknown := func(n, unknown roost.Bytes) int64 {
		if n == 0 {
			n = unknown
		}
		return int64(n)
	}
	cpu, gpus := r.CPU, r.GPUs
	if cpu == 0 {
		cpu = unknownCPU
	}
	if gpus == 0 && !p.Node.IsSized() {
		gpus = 1000
	}
	for _, name := range []string{roost.AttrCpus, roost.AttrTotalCpus} {
		ad.SetReal(name, cpu.Cores())
	}
	for _, name := range []string{roost.AttrMemory, roost.AttrTotalMemory} {
		ad.SetInt(name, orUnknown(r.Memory, unknownMemory)/int64(roost.MiB))
	}
	for _, name := range []string{roost.AttrDisk, roost.AttrTotalDisk} {
		ad.SetInt(name, orUnknown(r.Disk, unknownDisk)/int64(roost.KiB))
	}
	for _, name := range []string{roost.AttrGpus, roost.AttrTotalGpus} {
		ad.SetInt(name, int64(gpus))
	}
	ad.SetString(roost.AttrMyType, "Machine")
	ad.SetString(roost.AttrOpSys, "LINUX")
	if own, err := p.Node.ParseAttributes(); err == nil {
		ad.Update(own)
	}
	return ad
}

// volatileAttributes are those of a pilot's ad that say nothing of the next pilot.
func volatileAttributes() []string {
	return []string{roost.AttrName, roost.AttrMachine, roost.AttrMyAddress, roost.AttrClaims, roost.AttrNumClaims,
		roost.AttrNumRunning, roost.AttrState, roost.AttrActivity, roost.AttrEndpoints, roost.AttrEndpointSigners,
		roost.AttrMetricsPorts, roost.AttrPortsTaken, roost.AttrPortsForeign, roost.AttrPortsQuarantined,
		roost.AttrPortRange, roost.AttrBootID, roost.AttrUpdateSequence, roost.AttrDaemonStart, roost.AttrReclaimedCpus,
		roost.AttrReclaimedMemory, roost.AttrContainerImages, roost.AttrLoadAvg}
}

// emptyNodeAd returns the ad of a pilot as it would be without tasks and without what is
// its alone.
func emptyNodeAd(pilot *classad.Ad) *classad.Ad {
	ad := pilot.Copy()
	for _, pair := range [][2]string{{roost.AttrCpus, roost.AttrTotalCpus}, {roost.AttrMemory, roost.AttrTotalMemory},
		{roost.AttrDisk, roost.AttrTotalDisk}, {roost.AttrGpus, roost.AttrTotalGpus}} {
		if total, ok := ad.Lookup(pair[1]); ok {
			ad.Insert(pair[0], total)
		}
	}
	if units, err := gpu.ReadAd(ad); err == nil && units != nil {
		units.EmptyClone().Describe(ad)
	}
	for _, name := range volatileAttributes() {
		ad.Delete(name)
	}
	for _, name := range ad.Names() { // until when it lives, whose it is, and its own policy
		if strings.HasPrefix(strings.ToLower(name), "pilot") {
			ad.Delete(name)
		}
	}
	ad.Delete(roost.AttrRequirements)
	ad.Delete(roost.AttrStart)
	return ad
}

// trialNodes returns n machines as a provider would give them. Their names rise with
// their numbers.
func trialNodes(prefix string, ad *classad.Ad, n int) []*match.Machine {
	machines := make([]*match.Machine, n)
	for i := range machines {
		name := fmt.Sprintf("%s-%06d", prefix, i)
		own := ad.Copy()
		own.SetString(roost.AttrName, name)
		own.SetString(roost.AttrMachine, name)
		machines[i] = match.NewMachine(name, 1, 1, own)
	}
	return machines
}

// mayMatch reports whether a request might run on a node of which little is known.
// Requirements that refer to an attribute which is not known do not exclude it.
func mayMatch(class *match.RequestClass, node *classad.Ad, now time.Time) bool {
	machine := match.NewMachine("unknown", 1, 1, node.Copy())
	needed := class.Resources
	if needed.GPUMemory > 0 {
		needed.GPUs = min(needed.GPUs, 1)
	}
	if !needed.FitsIn(machine.Total) {
		return false
	}
	requirements, ok := class.Ad.Lookup(roost.AttrRequirements)
	if !ok {
		return true
	}
	v := classad.Eval(requirements, class.Ad, node, &classad.EvalEnv{Now: now})
	return v.IsUndefined() || v.IsTrue()
}
