package slot

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// adWriter is the claim table as far as it writes the ad of its machine.
type adWriter struct{ *ClaimTable }

func (c *ClaimTable) adWriter() adWriter { return adWriter{c} }

// SetLoad takes in the load average. It is what requests are held against until the next,
// so that claims are weighed by what was advertised.
func (c *ClaimTable) SetLoad(load float64) { c.advertisedLoad = &load }

// Ad is the machine's ad as it stands: what the options say, and what is free.
func (c *ClaimTable) Ad() *classad.Ad {
	c.nodeQueues().setQueueAttributes(c.free)
	return c.adWriter().ad(c.free)
}

func (c adWriter) ad(f *gpu.FreeResources) *classad.Ad {
	ad := c.opt.Ad.Copy()
	describe(ad, f.Total(), roost.AttrTotalCpus, roost.AttrTotalMemory, roost.AttrTotalDisk, roost.AttrTotalGpus)
	describe(ad, f.LeftForBatch(), roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus)
	gpu.DescribeIORates(ad, f.Total().IO, f.Total().IO, roost.AttrTotalDiskIO, roost.AttrTotalNetwork)
	gpu.DescribeIORates(ad, f.LeftForBatch().IO, f.Total().IO, roost.AttrDiskIO, roost.AttrNetwork)
	f.Describe(ad)
	c.ports.describe(ad)
	state := "Unclaimed"
	switch {
	case c.drainReason != "":
		state = "Drained"
	case len(c.claims) > 0:
		state = "Claimed"
	}
	ad.SetString(roost.AttrState, state)
	if c.claims.exclusive() != nil {
		ad.SetBool(roost.AttrExclusive, true)
	}
	if c.isAdFull() {
		ad.SetBool(roost.AttrRequirements, false)
	}
	ad.SetInt(roost.AttrNumClaims, int64(len(c.claims)))
	ad.SetInt(roost.AttrNumRunning, int64(c.Running()))
	if c.advertisedLoad != nil {
		ad.SetReal(roost.AttrLoadAvg, *c.advertisedLoad)
	}
	return ad
}

func describe(ad *classad.Ad, r roost.Resources, cpus, memory, disk, gpus string) {
	if r.CPU%1000 == 0 {
		ad.SetInt(cpus, int64(r.CPU/1000))
	} else {
		ad.SetReal(cpus, r.CPU.Cores())
	}
	ad.SetInt(memory, int64(r.Memory/roost.MiB))
	ad.SetInt(disk, int64(r.Disk/roost.KiB))
	ad.SetInt(gpus, int64(r.GPUs))
}
