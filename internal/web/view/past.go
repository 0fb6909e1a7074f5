package view

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cellhistory"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/simchild"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// Past shows what the cell was like at its checkpoints. Every user may read those.
type Past struct {
	Directory string // of the checkpoints
	Simulator simchild.Simulator
}

// CheckpointList is the checkpoints of the cell that are there, the oldest first.
type CheckpointList struct {
	Version     int                 `json:"v"`
	Checkpoints []CellCheckpointRow `json:"checkpoints"`
}

// CellCheckpointRow is one checkpoint.
type CellCheckpointRow struct {
	Name string    `json:"name"` // for the address /v1/past/NAME
	At   time.Time `json:"at"`
}

// PastPage is a page of a past instant, and the checkpoints around it.
type PastPage struct {
	Cell  *cellhistory.PastCell
	All   []CellCheckpointRow
	Index int      // of the checkpoint that is shown; -1: none is
	Map   *NodeMap // of the checkpoint
}

// Last is the index of the newest checkpoint.
func (p *PastPage) Last() int { return len(p.All) - 1 }

// Row returns the checkpoint so many further; nil: there is none.
func (p *PastPage) Row(further int) *CellCheckpointRow {
	if i := p.Index + further; p.Index >= 0 && i >= 0 && i < len(p.All) {
		return &p.All[i]
	}
	return nil
}

// maxPastNodes and the others bound what a page shows; the API has all.
const (
	maxPastNodes  = 500
	maxPastShares = 200
)

// Nodes are the nodes that the page lists: those that are in use or drained come first.
func (p *PastPage) Nodes() []document.Node {
	nodes := slices.Clone(p.Cell.Nodes)
	slices.SortStableFunc(nodes, func(a, b document.Node) int { return nodeRank(&a) - nodeRank(&b) })
	return nodes[:min(len(nodes), maxPastNodes)]
}

func nodeRank(n *document.Node) int {
	switch {
	case n.Drain != "":
		return 0
	case n.Cpus.Free < n.Cpus.Total:
		return 1
	}
	return 2
}

// MoreNodes is how many nodes the page does not list.
func (p *PastPage) MoreNodes() int { return max(len(p.Cell.Nodes)-maxPastNodes, 0) }

// Submitters are those that the page lists.
func (p *PastPage) Submitters() []ledger.SubmitterUsage {
	return p.Cell.Shares.Submitters[:min(len(p.Cell.Shares.Submitters), maxPastShares)]
}

// MoreShares is how many submitters the page does not list.
func (p *PastPage) MoreShares() int { return max(len(p.Cell.Shares.Submitters)-maxPastShares, 0) }

// maxPastRows bounds the checkpoints that the API lists.
const maxPastRows = 1000

// List shows which checkpoints there are, the newest of them.
func (p Past) List(c *route.Call) (any, error) {
	rows, err := p.rows()
	if err != nil {
		return nil, err
	}
	return CheckpointList{document.Version, rows[max(len(rows)-maxPastRows, 0):]}, nil
}

// ShowList answers with the page of the checkpoints, or leads to that of the checkpoint
// with an index.
func (p Past) ShowList(c *route.Call) error {
	rows, err := p.rows()
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(c.QueryValue("n")); err == nil && n >= 0 && n < len(rows) {
		return c.Redirect("/past/" + rows[n].Name)
	}
	return c.ShowPage(http.StatusOK, "past", &PastPage{All: rows, Index: -1})
}

// rows are the checkpoints, the oldest first.
func (p Past) rows() ([]CellCheckpointRow, error) {
	all, err := cellhistory.List(p.Directory)
	if err != nil {
		return nil, err
	}
	rows := make([]CellCheckpointRow, len(all))
	for i, at := range all {
		rows[i] = CellCheckpointRow{cellhistory.Name(at), at}
	}
	return rows, nil
}

// Show answers with what the cell was like at a checkpoint. The document is that of roost
// sim show, byte for byte.
func (p Past) Show(c *route.Call) error {
	at, ok := cellhistory.ParseName(c.PathValue("checkpoint"))
	if !ok {
		return fmt.Errorf("checkpoint %.40q: %w: names are as 20261128T140000Z", c.PathValue("checkpoint"),
			roost.NotFound)
	}
	if !c.IsPage {
		text, err := p.describe(c, at)
		if err != nil {
			return err
		}
		return c.WriteText(http.StatusOK, "application/json", text)
	}
	rows, err := p.rows()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(rows, func(r CellCheckpointRow) bool { return r.At.Equal(at) })
	if i < 0 {
		return fmt.Errorf("checkpoint %s: %w: there is none of that instant", cellhistory.Name(at), roost.NotFound)
	}
	page, err := p.show(c, &PastPage{All: rows}, i)
	if err != nil {
		return err
	}
	return c.ShowPage(http.StatusOK, "past", page)
}

// show fills in a page with the checkpoint of an index.
func (p Past) show(c *route.Call, page *PastPage, i int) (*PastPage, error) {
	page.Index = i
	var err error
	if page.Map, err = newNodeMap(c.QueryValue("by")); err != nil {
		return nil, err
	}
	text, err := p.describe(c, page.All[i].At)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &page.Cell); err != nil {
		return nil, fmt.Errorf("%w: what the simulator says: %w", roost.Internal, err)
	}
	for i := range page.Cell.Nodes {
		page.Map.add(&page.Cell.Nodes[i], false)
	}
	page.Map.addGroups()
	page.Map.IsPast = true
	return page, nil
}

// describe has a child say what the cell was like.
func (p Past) describe(c *route.Call, at time.Time) ([]byte, error) {
	checkpoint, err := cellhistory.Read(p.Directory, at)
	if err != nil {
		return nil, err
	}
	c.AsOf = at
	return p.Simulator.Show(c.Context(), checkpoint)
}
