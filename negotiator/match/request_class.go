package match

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// RequestClass is what a request asks for, prepared for matching. The matcher stores its
// compiled query in it, so make a class once for each ad of a request and pass it with
// each snapshot. It belongs to the Matcher that saw it last.
type RequestClass struct {
	Ad        *classad.Ad
	Resources roost.Resources      // of one unit
	AppClass  gpu.AppClass         // stream if the ad says so, else batch
	Limits    []roost.LimitRequest // licences that each unit takes, from the ad
	// the machine attribute over whose values the job is to be spread; "": none
	Spread      string
	spreadAttrs [1]string // Spread as a list
	Scatter     bool      // each unit of a gang starts on a machine of its own
	Exclusive   bool      // a unit takes all of an empty machine: see place_exclusive.go
	// the machines of a gang must have the same value of this attribute; "": any
	// machines, see gang_placement_set.go
	PlacementSetAttr  string
	Job               string         // the job whose units Spread counts, "12.host"
	StaticPorts       []uint16       // numbers that its ports must have, sorted
	PortCapabilities  []string       // capabilities that its owner needs for its ports
	SubmitHost        string         // the owner's submit node, if the ad names it
	PreferredPackages []string       // packages that it prefers to find on the machine
	Prefer            []classad.Expr // expressions that improve a machine's score if they hold

	mayReclaim bool // its band is not prod, so it may use reclaimed resources
	// the least that a machine's sums must have: Resources, without GPUs that may be
	// shared
	minimumSums roost.Resources

	compiledFor      *Matcher    // the matcher that query was compiled for
	mixKey           *mixRequest // its entry in the GPU mix; nil until it is first needed
	query            *classad.Query
	rankCountsPrefer *classad.Query // a query whose Rank counts the expressions of Prefer that hold
	noFit            noFitCache
	noVictims        noFitCache       // the same, for a plan in which it could preempt no claim
	lastFitWindow    *cachedFitWindow // the result of the last search for a backfill reservation
}

// NewClass reads the ad of a request. The owner, the band and the resources come from the
// request itself and replace those of the ad, so a machine's policy sees what would
// really run. The error wraps roost.Invalid.
func NewClass(text string, owner fairshare.Submitter, band roost.PriorityBand,
	r roost.Resources) (*RequestClass, error) {
	ad := classad.New()
	if strings.TrimSpace(text) != "" {
		parsed, err := classad.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("request: %w: %w", roost.Invalid, err)
		}
		ad = parsed
	}
	if r.IsNegative() || r == (roost.Resources{}) {
		return nil, fmt.Errorf("request: %w: it asks for %v", roost.Invalid, r)
	}
	ad.SetString(roost.AttrOwner, owner.Owner)
	if owner.Group != "" {
		ad.SetString(roost.AttrGroup, owner.Group)
	}
	ad.SetString(roost.AttrBand, band.String())
	setRequestCPUs(ad, r.CPU)
	ad.SetInt(roost.AttrRequestMemory, int64((r.Memory+roost.MiB-1)/roost.MiB))
	ad.SetInt(roost.AttrRequestDisk, int64((r.Disk+roost.KiB-1)/roost.KiB))
	ad.SetInt(roost.AttrRequestGpus, int64(r.GPUs))
	ad.Delete(roost.AttrRequestGpuMem)
	if r.GPUMemory > 0 {
		ad.SetInt(roost.AttrRequestGpuMem, int64((r.GPUMemory+roost.MiB-1)/roost.MiB))
	}

	ad.Delete(roost.AttrRequestDiskIO)
	ad.Delete(roost.AttrRequestNet)
	gpu.DescribeIORates(ad, r.IO, r.IO, roost.AttrRequestDiskIO, roost.AttrRequestNet)
	if _, ok := ad.Lookup(roost.AttrRequirements); !ok {
		ad.SetBool(roost.AttrRequirements, true)
	}
	text, _ = ad.Str(roost.AttrAppClass)
	app, err := gpu.ParseClass(text)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	c := &RequestClass{Ad: ad, Resources: r, AppClass: app, minimumSums: r, mayReclaim: !band.IsProd()}
	if err := c.readSoftConstraints(); err != nil {
		return nil, err
	}
	if r.GPUMemory > 0 {
		c.minimumSums.GPUs = 0
	}
	return c, nil
}

// takesMachineOnce reports whether a machine has room for at most one unit.
func (c *RequestClass) takesMachineOnce() bool { return c.Exclusive || len(c.StaticPorts) > 0 }

func (c *RequestClass) deviceRequest() gpu.DeviceRequest {
	return gpu.DeviceRequest{Resources: c.Resources, Class: c.AppClass, MayReclaim: c.mayReclaim}
}

// setRequestCPUs sets RequestCpus, as an integer where the value is one.
func setRequestCPUs(ad *classad.Ad, cpu roost.MilliCPU) {
	if cpu%1000 == 0 {
		ad.SetInt(roost.AttrRequestCpus, int64(cpu/1000))
		return
	}
	ad.SetReal(roost.AttrRequestCpus, cpu.Cores())
}
