package match

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// RequestClass is what a request asks for, made ready for matching. The matcher keeps in
// it what it has compiled, so a class is made once for each ad of a request and handed in
// again with each snapshot. It belongs to the Matcher that saw it last.
type RequestClass struct {
	Ad        *classad.Ad
	Resources roost.Resources      // of one unit
	AppClass  gpu.AppClass         // stream, if the ad says so
	Limits    []roost.LimitRequest // that a unit takes, if the ad says so
	// the machines' attribute over whose values the job is to be spread; "" for none
	Spread    string
	Scatter   bool // the units of a gang of it start on a machine each
	Exclusive bool // a unit has its machine alone, and all of it: see onlyConjunct.go
	// the machines of a gang of it have the same value of this attribute; "" for
	// whichever: see together.go
	PlacementSetAttr  string
	Job               string         // whose units are counted for that, "12.host"
	PreferredPackages []string       // that it would like to find
	Prefer            []classad.Expr // what it would like of a machine

	mayReclaim  bool            // its band bears being stopped, and may be given what others leave
	minimumSums roost.Resources // what a machine's sums must have: Resources without GPUs that may be shared

	compiledFor      *Matcher    // for which query was compiled
	mixKey           *mixRequest // nil until it is asked for
	query            *classad.Query
	rankCountsPrefer *classad.Query // its Rank counts what of Prefer holds
	noFit            noFitCache
	noVictims        noFitCache       // likewise, of a plan in which it could displace nobody
	lastFitWindow    *cachedFitWindow // of the last look for what can be held for it
}

// NewClass reads the ad of a request. Whose it is and what it takes come from the request
// itself and replace what the ad says about it, so that a machine's policy judges what
// would really run. The error wraps roost.Invalid.
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

func (c *RequestClass) deviceRequest() gpu.DeviceRequest {
	return gpu.DeviceRequest{Resources: c.Resources, Class: c.AppClass, MayReclaim: c.mayReclaim}
}

// setRequestCPUs sets RequestCpus, as an integer where it is one.
func setRequestCPUs(ad *classad.Ad, cpu roost.MilliCPU) {
	if cpu%1000 == 0 {
		ad.SetInt(roost.AttrRequestCpus, int64(cpu/1000))
		return
	}
	ad.SetReal(roost.AttrRequestCpus, cpu.Cores())
}
