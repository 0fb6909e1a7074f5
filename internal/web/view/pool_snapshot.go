package view

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// poolSnapshot is one reading of the machines.
type poolSnapshot struct {
	at    time.Time
	took  time.Duration
	nodes []poolNode // by name
	down  []poolNode // by name, as they were when they were there last
	err   error
}

// poolNode is a machine with what it lends.
type poolNode struct {
	document.Node
	// cores and bytes that its tasks requested and do not use, on offer to other tasks
	reclaimedCPUs, reclaimedMemory float64
	drained                        *DrainMark
	acceptsGuests                  bool // it runs tasks of other pools
}

// poolNodeOf reads the ad of a machine.
func poolNodeOf(ad *classad.Ad) poolNode {
	n := poolNode{Node: document.NodeOf(ad)}
	n.reclaimedCPUs, _ = ad.Real(roost.AttrReclaimedCpus)
	n.reclaimedMemory, _ = ad.Real(roost.AttrReclaimedMemory)
	n.reclaimedMemory *= float64(roost.MiB)
	n.acceptsGuests, _ = ad.Bool(peer.AttrAcceptsGuests)
	if _, n.Desktop = ad.Lookup(roost.AttrOwnerBusy); n.Desktop {
		n.hidePresence()
	}
	return n
}

// hidePresence removes what says whether a person is at the machine: its load, and why
// its owner keeps it now. Everybody of the pool reads the rest.
func (n *poolNode) hidePresence() {
	n.Load = 0
	if n.Owner != "" {
		n.Owner = ownerWithholds
	}
}

// ownerWithholds is all that the pool is told of a desktop that takes no tasks now.
const ownerWithholds = "its owner does not lend it now"

// freshFor returns how long a snapshot is fresh.
func (s *poolSnapshot) freshFor() time.Duration {
	return min(max(poolFresh, readShare*s.took), maxPoolFresh)
}

// goneNode is a machine that is in the pool no longer.
type goneNode struct {
	node poolNode
	at   time.Time // of the first reading without it
}

// How long a machine that is gone is shown as down, and how many are.
const (
	maxGone   = 10_000
	goneShown = 24 * time.Hour
)

// noteGone notes which machines of the last reading a new one lacks, and fills in those
// that are down. p.mu is held.
func (p *Pool) noteGone(next *poolSnapshot) {
	if next.err != nil {
		return
	}
	if p.gone == nil {
		p.gone = map[string]goneNode{}
	}
	there := make(map[string]bool, len(next.nodes))
	for i := range next.nodes {
		there[next.nodes[i].Name] = true
		delete(p.gone, next.nodes[i].Name)
	}
	for _, n := range p.last.nodes {
		if _, known := p.gone[n.Name]; !known && !there[n.Name] && len(p.gone) < maxGone {
			p.gone[n.Name] = goneNode{n, next.at}
		}
	}
	for name, g := range p.gone {
		if next.at.Sub(g.at) > goneShown {
			delete(p.gone, name)
			continue
		}
		g.node.State = downState
		next.down = append(next.down, g.node)
	}
	slices.SortFunc(next.down, comparePoolNodes)
}

// downState is the state of a machine that is gone.
const downState = "down"

func comparePoolNodes(a, b poolNode) int { return document.CompareNames(a.Name, b.Name) }

// maxNodes bounds the machines that are shown.
const maxNodes = 100_000

// nodeAttributes are the attributes of an ad that a list needs.
func nodeAttributes() []string {
	return []string{roost.AttrName, roost.AttrState, roost.AttrLoadAvg, roost.AttrCpus, roost.AttrTotalCpus,
		roost.AttrGpus, roost.AttrTotalGpus, roost.AttrMemory, roost.AttrTotalMemory, roost.AttrDisk,
		roost.AttrTotalDisk, roost.AttrNumRunning, roost.AttrNumClaims, roost.AttrArch, roost.AttrOpSys,
		roost.AttrVersion, roost.AttrOwnerBusyReason, roost.AttrOwnerBusy,
		roost.AttrReclaimedCpus, roost.AttrReclaimedMemory, document.RackAttr, document.NodeClassAttr,
		roost.AttrGpuModels, roost.AttrPilotOwner, roost.AttrPilotProvider, roost.AttrPilotKey, roost.AttrPilotHost,
		roost.AttrPilotUntil, peer.AttrAcceptsGuests}
}

func readPool(c *route.Call) poolSnapshot {
	s := poolSnapshot{at: time.Now()}
	s.err = eachNode(c, &wire.AdQuery{Type: "Machine", Projection: nodeAttributes(), Limit: maxNodes},
		func(n poolNode) { s.nodes = append(s.nodes, n) })
	slices.SortFunc(s.nodes, comparePoolNodes)
	if s.err == nil {
		s.markDrains(c)
	}
	s.took = time.Since(s.at)
	return s
}

// eachNode calls f with the machines that a query finds.
func eachNode(c *route.Call, q *wire.AdQuery, f func(poolNode)) error {
	return ask(c, func(ctx context.Context, schedd wire.ScheddClient) error {
		stream, err := schedd.Ads(ctx, q)
		return drain(stream, err, func(text *wire.AdText) error {
			ad, err := classad.Parse(text.GetAd())
			if err == nil {
				f(poolNodeOf(ad))
			}
			return nil // one ad that makes no sense hides no others
		})
	})
}

// markDrains marks what administrators say of machines. Where no negotiator answers, none
// is marked.
func (s *poolSnapshot) markDrains(c *route.Call) {
	at := make(map[string]*poolNode, len(s.nodes))
	for i := range s.nodes {
		at[s.nodes[i].Name] = &s.nodes[i]
	}
	var drains []AttributedObject[ledger.MachineDrain]
	if showCell(c, string(ledger.KindDrain), &drains) == nil {
		for _, d := range drains {
			if n := at[d.Object.Node]; n != nil && d.Object.Contains(s.at) {
				n.State, n.Drain = "drained", cmp.Or(d.Object.Reason, "no reason was given")
				n.drained = &DrainMark{By: d.By, At: d.At}
			}
		}
	}
	var comments []AttributedObject[ledger.MachineComment]
	if showCell(c, string(ledger.KindComment), &comments) == nil {
		for _, m := range comments {
			if n := at[m.Object.Node]; n != nil {
				n.Comment = m.Object.Text
			}
		}
	}
}
