package match

import (
	"math"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// Machine is one version of a machine's ad, prepared for matching. The matcher records in
// it where it stores the ad, so make a version once and pass it with each snapshot. It
// belongs to the Matcher that saw it last.
type Machine struct {
	Name     string
	Address  string
	Host     string // the node that the machine belongs to
	Started  int64  // unix nanoseconds: when its startd started
	Sequence uint64 // sequence number of the ad
	Ad       *classad.Ad
	Total    roost.Resources
	Free     roost.Resources // free resources according to the ad
	Claims   []MachineClaim  // the claims that hold its resources; none if the ad does not list them
	// claims that wait until their victims have left; their Placement is what they get of
	// it
	Preemptors    []MachineClaim
	ClaimsUnknown error // why Claims is empty although the ad has some; else nil

	// Small fields are grouped to save memory: a pool may have a hundred thousand
	// machines.
	Reclaim         roost.ReclaimLevel // how boldly it reclaims what its tasks do not use
	acceptsQueued   bool               // some resource unit has a free place in its node queue
	freeByUnit      bool               // free resources must be computed by unit, because sums are not exact
	drained         bool
	ownerActive     bool // its owner uses it
	paused          bool // its owner has ordered that nothing runs on it
	claimsChanging  bool // some claims are vacating or will take over what a victim holds
	rankPreempts    bool // its Rank may prefer a request to some of its claims
	usesPredictions bool // some claims have no walltime but a predicted end

	ports         *machinePorts                    // nil: none with a number of its own is taken
	packages      []string                         // names of installed packages, sorted
	units         *gpu.FreeResources               // nil: the ad does not describe resource units
	streamFree    roost.MilliCPU                   // CPU that a stream task can get in one unit
	preemptible   [roost.BatchBand + 1]preemptible // by band: what evicting claims up to that band would free
	goneAt        int64                            // unix seconds: when a pilot is gone; 0: it stays
	firstEnd      int64                            // unix seconds: earliest end of a claim; 0: unknown
	futureReturns []timeline.CapacityRelease       // capacity that becomes free beside that of Claims
	inMatcher     *Matcher                         // the matcher whose table holds the ad
	prodCPU       roost.MilliCPU                   // CPU that claims of production and monitoring hold
	load          float32                          // cores that are busy, by its ad; -1: unknown
	row           classad.RowID
	number        int32 // its number in the snapshot of the last cycle that saw it
	seenInCycle   int   // number of the last cycle that saw it
}

// NewMachine prepares an ad, which it owns from now on; it removes the list of claims
// from the ad. An amount that is missing or invalid counts as 0.
func NewMachine(name string, started int64, sequence uint64, ad *classad.Ad) *Machine {
	m := &Machine{Started: started, Sequence: sequence, Ad: ad}
	m.Name, m.Address, m.Host = strings.Clone(name), stringAttr(ad, roost.AttrMyAddress),
		stringAttr(ad, roost.AttrMachine)
	if m.Host == m.Name {
		m.Host = m.Name // share one string
	}
	m.Free = resourcesOf(ad, roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus)
	m.Free.IO = gpu.IORatesOf(ad, roost.AttrDiskIO, roost.AttrNetwork)
	m.Total = resourcesOf(ad, roost.AttrTotalCpus, roost.AttrTotalMemory, roost.AttrTotalDisk, roost.AttrTotalGpus)
	m.Total.IO = gpu.IORatesOf(ad, roost.AttrTotalDiskIO, roost.AttrTotalNetwork).Max(m.Free.IO)
	m.Total = maxResources(m.Total, m.Free)
	m.readUnits()
	m.readPackages()
	m.readPorts()
	m.readClaims()
	m.deriveFromClaims()
	state, _ := ad.Str(roost.AttrState)
	m.drained, m.ownerActive = strings.EqualFold(state, "Drained"), strings.EqualFold(state, "Owner")
	// also while a claim is suspended there, or leaves
	if _, ok := ad.Lookup(roost.AttrOwnerBusyReason); ok && !m.drained {
		m.ownerActive = true
	}
	m.paused, _ = ad.Bool(roost.AttrPaused)
	m.goneAt, _ = ad.Int(roost.AttrPilotUntil)
	m.load = -1
	if load, ok := ad.Real(roost.AttrLoadAvg); ok && load >= 0 {
		m.load = float32(load)
	}
	return m
}

// deriveFromClaims sets the fields that follow from the claims.
func (m *Machine) deriveFromClaims() {
	m.rankPreempts, m.claimsChanging, m.usesPredictions, m.firstEnd, m.preemptible = false, false, false, 0,
		[roost.BatchBand + 1]preemptible{}
	m.prodCPU = 0
	m.readRank()
	m.indexPreemptible()
	for i := range m.Claims {
		if m.Claims[i].Band.IsProd() {
			m.prodCPU += m.Claims[i].Resources.CPU
		}
		m.usesPredictions = m.usesPredictions || m.Claims[i].WalltimeEnd == 0 && m.Claims[i].PredictedEnd > 0
		if ends := m.Claims[i].earliestExpectedEnd(); ends > 0 && (m.firstEnd == 0 || ends < m.firstEnd) {
			m.firstEnd = ends
		}
	}
}

// WithClaims returns the machine with other free resources and claims, as its next ad
// would show it. The claims are in the order in which they end. The machine must have one
// resource unit without devices, and nothing else may change. A simulator uses it to
// avoid writing ads.
func (m *Machine) WithClaims(free roost.Resources, claims []MachineClaim) *Machine {
	next := *m
	next.Sequence++
	next.Free, next.Claims, next.streamFree, next.firstEnd, next.futureReturns, next.inMatcher = free, claims, free.CPU,
		0, nil, nil
	next.prodCPU = 0
	for i := range claims {
		if claims[i].Band.IsProd() {
			next.prodCPU += claims[i].Resources.CPU
		}
		if ends := claims[i].earliestExpectedEnd(); ends > 0 && (next.firstEnd == 0 || ends < next.firstEnd) {
			next.firstEnd = ends
		}
	}
	return &next
}

// WithReturning returns the machine with other free resources, and with capacity that
// becomes free later, in order of time. It has no claims, so nothing is preempted there.
// A simulator uses it where only the amounts matter. The list must not be changed before
// the next plan is made.
func (m *Machine) WithReturning(free roost.Resources, returns []timeline.CapacityRelease) *Machine {
	next := m.WithClaims(free, nil)
	if next.futureReturns = returns; len(returns) > 0 {
		next.firstEnd = returns[0].At
	}
	return next
}

// stringAttr returns a string attribute, or "" if it is none. The result is a copy, so
// that the text of the ad does not stay in memory.
func stringAttr(ad *classad.Ad, name string) string {
	s, _ := ad.Str(name)
	return strings.Clone(s)
}

func resourcesOf(ad *classad.Ad, cpus, memory, disk, gpus string) roost.Resources {
	return roost.Resources{
		CPU:    roost.MilliCPU(amountAttr(ad, cpus, 1000)),
		Memory: roost.Bytes(amountAttr(ad, memory, float64(roost.MiB))),
		Disk:   roost.Bytes(amountAttr(ad, disk, float64(roost.KiB))),
		GPUs:   int(amountAttr(ad, gpus, 1)),
	}
}

// amountAttr returns a numeric attribute in units, rounded down except for binary
// rounding errors.
func amountAttr(ad *classad.Ad, name string, unit float64) int64 {
	n, ok := ad.Real(name)
	if v := n * unit; ok && v > 0 && v < math.MaxInt64/1024 {
		return int64(v + 1e-6)
	}
	return 0
}

func maxResources(r, s roost.Resources) roost.Resources {
	return roost.Resources{
		CPU: max(r.CPU, s.CPU), Memory: max(r.Memory, s.Memory), Disk: max(r.Disk, s.Disk), GPUs: max(r.GPUs, s.GPUs),
		IO: r.IO.Max(s.IO),
	}
}
