package match

import (
	"math"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/forecast"
)

// Machine is one version of a machine's ad, made ready for matching. The matcher notes in it where it keeps the ad, so a version is made
// once and handed in again with each snapshot. It belongs to the Matcher that saw it last.
type Machine struct {
	Name     string
	Address  string
	Host     string // the node that it is of
	Started  int64  // unix nanoseconds of its daemon's start
	Sequence uint64 // of the ad
	Ad       *classad.Ad
	Total    roost.Resources
	Free     roost.Resources // as the ad says
	Claims   []Claim         // who has what of it; of a machine that says nothing of them, none
	Heirs    []Claim         // claims that wait until others have left; their Placement is what they get of what those hold
	Unclear  error           // why Claims is empty though the ad has some

	// The small ones stand together: there are a hundred thousand machines.
	Reclaim roost.Reclaim // how boldly it lends what its tasks leave
	room    bool          // more may wait for some unit
	split   bool          // what is free has to be asked of units
	drained bool
	owned   bool // its owner uses it
	paused  bool // or has said that nothing runs on it
	leaves  bool // some of its claims are about to leave, or to come
	choosy  bool // it would rather run another than some of its claims
	guessed bool // of some that have no walltime somebody knows when they are likely to be over

	packages []string                // in order
	units    *gpu.Free               // nil: the ad says nothing of units
	stream   roost.MilliCPU          // free for stream tasks, in one unit
	prey     [roost.Batch + 1]larder // by band: what evicting claims up to it would make room for
	firstEnd int64                   // of its claims, in unix seconds; 0: nobody knows of any
	returns  []forecast.Release      // what falls free beside what its claims leave
	in       *Matcher                // in whose table it is
	row      classad.Row
	at       int32 // its number in the snapshot of the last plan that saw it
	cycle    int   // which plan that was
}

// NewMachine makes an ad ready, which is its own from now on: the list of claims goes out of it. What the ad has no good number for counts as nothing.
func NewMachine(name string, started int64, sequence uint64, ad *classad.Ad) *Machine {
	m := &Machine{Started: started, Sequence: sequence, Ad: ad}
	m.Name, m.Address, m.Host = strings.Clone(name), kept(ad, roost.AttrMyAddress), kept(ad, roost.AttrMachine)
	if m.Host == m.Name {
		m.Host = m.Name // they share their bytes
	}
	m.Free = amounts(ad, roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus)
	m.Total = amounts(ad, roost.AttrTotalCpus, roost.AttrTotalMemory, roost.AttrTotalDisk, roost.AttrTotalGpus)
	m.Total = atLeast(m.Total, m.Free)
	m.readUnits()
	m.readPackages()
	m.readClaims()
	m.weighClaims()
	state, _ := ad.Str(roost.AttrState)
	m.drained, m.owned = strings.EqualFold(state, "Drained"), strings.EqualFold(state, "Owner")
	if _, ok := ad.Lookup(roost.AttrOwnerBusyReason); ok && !m.drained { // also while something stands still there, or leaves
		m.owned = true
	}
	m.paused, _ = ad.Bool(roost.AttrPaused)
	return m
}

// weighClaims notes what follows from who has the machine.
func (m *Machine) weighClaims() {
	m.choosy, m.leaves, m.guessed, m.firstEnd, m.prey = false, false, false, 0, [roost.Batch + 1]larder{}
	m.readRank()
	m.stock()
	for i := range m.Claims {
		m.guessed = m.guessed || m.Claims[i].Ends == 0 && m.Claims[i].Expected > 0
		if ends := m.Claims[i].firstOver(); ends > 0 && (m.firstEnd == 0 || ends < m.firstEnd) {
			m.firstEnd = ends
		}
	}
}

// With is the machine as its next ad would show it with so much free and these claims, in the order in which they end: one that nothing but that has
// changed of, and that has one resource unit without devices. Who simulates a pool is spared to write ads.
func (m *Machine) With(free roost.Resources, claims []Claim) *Machine {
	next := *m
	next.Sequence++
	next.Free, next.Claims, next.stream, next.firstEnd, next.returns, next.in = free, claims, free.CPU, 0, nil, nil
	for i := range claims {
		if ends := claims[i].firstOver(); ends > 0 && (next.firstEnd == 0 || ends < next.firstEnd) {
			next.firstEnd = ends
		}
	}
	return &next
}

// Returning is the machine as its next ad would show it with so much free, and so much that falls free, in order of time. It does not say whose that is: nobody is
// displaced there. Who simulates a pool of whose tasks no more counts is spared to make claims of them. The list must not be changed before the next plan is made.
func (m *Machine) Returning(free roost.Resources, returns []forecast.Release) *Machine {
	next := m.With(free, nil)
	if next.returns = returns; len(returns) > 0 {
		next.firstEnd = returns[0].At
	}
	return next
}

// kept is an attribute that is a string, "" otherwise. It is no part of the text that the ad was read from, which would stay in memory for it.
func kept(ad *classad.Ad, name string) string {
	s, _ := ad.Str(name)
	return strings.Clone(s)
}

func amounts(ad *classad.Ad, cpus, memory, disk, gpus string) roost.Resources {
	return roost.Resources{
		CPU:    roost.MilliCPU(amount(ad, cpus, 1000)),
		Memory: roost.Bytes(amount(ad, memory, float64(roost.MiB))),
		Disk:   roost.Bytes(amount(ad, disk, float64(roost.KiB))),
		GPUs:   int(amount(ad, gpus, 1)),
	}
}

// amount is an attribute in units, rounded down but for the dust of binary fractions.
func amount(ad *classad.Ad, name string, unit float64) int64 {
	n, ok := ad.Real(name)
	if v := n * unit; ok && v > 0 && v < math.MaxInt64/1024 {
		return int64(v + 1e-6)
	}
	return 0
}

func atLeast(r, s roost.Resources) roost.Resources {
	return roost.Resources{
		CPU: max(r.CPU, s.CPU), Memory: max(r.Memory, s.Memory), Disk: max(r.Disk, s.Disk), GPUs: max(r.GPUs, s.GPUs),
	}
}
