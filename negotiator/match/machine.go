package match

import (
	"math"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// Machine is one version of a machine's ad, made ready for matching. The matcher notes in
// it where it keeps the ad, so a version is made once and handed in again with each
// snapshot. It belongs to the Matcher that saw it last.
type Machine struct {
	Name     string
	Address  string
	Host     string // the node that it is of
	Started  int64  // unix nanoseconds of its daemon's start
	Sequence uint64 // of the ad
	Ad       *classad.Ad
	Total    roost.Resources
	Free     roost.Resources // as the ad says
	Claims   []MachineClaim  // who has what of it; of a machine that says nothing of them, none
	// claims that wait until others have left; their Placement is what they get of what
	// those hold
	Preemptors    []MachineClaim
	ClaimsUnknown error // why Claims is empty though the ad has some

	// The small ones stand together: there are a hundred thousand machines.
	Reclaim         roost.ReclaimLevel // how boldly it lends what its tasks leave
	acceptsQueued   bool               // more may wait for some unit
	freeByUnit      bool               // what is free has to be asked of units
	drained         bool
	ownerActive     bool // its owner uses it
	paused          bool // or has said that nothing runs on it
	claimsChanging  bool // some of its claims are about to leave, or to come
	rankPreempts    bool // it would rather run another than some of its claims
	usesPredictions bool // of some that have no walltime somebody knows when they are likely to be over

	packages      []string                         // in order
	units         *gpu.FreeResources               // nil: the ad says nothing of units
	streamFree    roost.MilliCPU                   // free for stream tasks, in one unit
	preemptible   [roost.BatchBand + 1]preemptible // by band: what evicting claims up to it would make room for
	firstEnd      int64                            // of its claims, in unix seconds; 0: nobody knows of any
	futureReturns []timeline.CapacityRelease       // what falls free beside what its claims leave
	inMatcher     *Matcher                         // inMatcher whose table it is
	row           classad.RowID
	number        int32 // its number in the snapshot of the last plan that saw it
	seenInCycle   int   // which plan that was
}

// NewMachine makes an ad ready, which is its own from now on: the list of claims goes out
// of it. What the ad has no good number for counts as nothing.
func NewMachine(name string, started int64, sequence uint64, ad *classad.Ad) *Machine {
	m := &Machine{Started: started, Sequence: sequence, Ad: ad}
	m.Name, m.Address, m.Host = strings.Clone(name), stringAttr(ad, roost.AttrMyAddress),
		stringAttr(ad, roost.AttrMachine)
	if m.Host == m.Name {
		m.Host = m.Name // they share their bytes
	}
	m.Free = resourcesOf(ad, roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus)
	m.Total = resourcesOf(ad, roost.AttrTotalCpus, roost.AttrTotalMemory, roost.AttrTotalDisk, roost.AttrTotalGpus)
	m.Total = maxResources(m.Total, m.Free)
	m.readUnits()
	m.readPackages()
	m.readClaims()
	m.deriveFromClaims()
	state, _ := ad.Str(roost.AttrState)
	m.drained, m.ownerActive = strings.EqualFold(state, "Drained"), strings.EqualFold(state, "Owner")
	// also while something stands still there, or leaves
	if _, ok := ad.Lookup(roost.AttrOwnerBusyReason); ok && !m.drained {
		m.ownerActive = true
	}
	m.paused, _ = ad.Bool(roost.AttrPaused)
	return m
}

// deriveFromClaims notes what follows from who has the machine.
func (m *Machine) deriveFromClaims() {
	m.rankPreempts, m.claimsChanging, m.usesPredictions, m.firstEnd, m.preemptible = false, false, false, 0,
		[roost.BatchBand + 1]preemptible{}
	m.readRank()
	m.indexPreemptible()
	for i := range m.Claims {
		m.usesPredictions = m.usesPredictions || m.Claims[i].WalltimeEnd == 0 && m.Claims[i].PredictedEnd > 0
		if ends := m.Claims[i].earliestExpectedEnd(); ends > 0 && (m.firstEnd == 0 || ends < m.firstEnd) {
			m.firstEnd = ends
		}
	}
}

// WithClaims is the machine as its next ad would show it with so much free and these
// claims, in the order in which they end: one that nothing but that has changed of, and
// that has one resource unit without devices. Who simulates a pool is spared to write
// ads.
func (m *Machine) WithClaims(free roost.Resources, claims []MachineClaim) *Machine {
	next := *m
	next.Sequence++
	next.Free, next.Claims, next.streamFree, next.firstEnd, next.futureReturns, next.inMatcher = free, claims, free.CPU,
		0, nil, nil
	for i := range claims {
		if ends := claims[i].earliestExpectedEnd(); ends > 0 && (next.firstEnd == 0 || ends < next.firstEnd) {
			next.firstEnd = ends
		}
	}
	return &next
}

// WithReturning is the machine as its next ad would show it with so much free, and so
// much that falls free, in order of time. It does not say whose that is: nobody is
// displaced there. Who simulates a pool of whose tasks no more counts is spared to make
// claims of them. The list must not be changed before the next plan is made.
func (m *Machine) WithReturning(free roost.Resources, returns []timeline.CapacityRelease) *Machine {
	next := m.WithClaims(free, nil)
	if next.futureReturns = returns; len(returns) > 0 {
		next.firstEnd = returns[0].At
	}
	return next
}

// stringAttr is an attribute that is a string, "" otherwise. It is no part of the text
// that the ad was read from, which would stay in memory for it.
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

// amountAttr is an attribute in units, rounded down but for the dust of binary fractions.
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
	}
}
