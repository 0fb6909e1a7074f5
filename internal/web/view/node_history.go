package view

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// NodeAd is what a machine says of itself to the pool.
type NodeAd struct {
	Version int             `json:"v"`
	Node    string          `json:"node"`
	Ad      json.RawMessage `json:"ad"`
	Text    string          `json:"text"`
}

// presence lists the attributes that tell of the person at a desktop, or of whose
// programs run there. Pages say only whether its owner lends it.
func presence() []string {
	return []string{roost.AttrKeyboardIdle, roost.AttrConsoleIdle, roost.AttrQuietTime, roost.AttrOwnerBusyReason,
		roost.AttrState, roost.AttrActivity, roost.AttrEnteredState, roost.AttrEnteredActivity, roost.AttrStateTimer,
		roost.AttrActivityTimer, roost.AttrLoadAvg, roost.AttrCondorLoad, roost.AttrCpuIsBusy, roost.AttrCpuBusyTime,
		roost.AttrCpuBusyValue, roost.AttrOnBattery, roost.AttrAsleep, roost.AttrMemoryPressure,
		roost.AttrCpuPressure, roost.AttrForeignCpu}
}

// ShowNodeAd returns the ad of a machine.
func (p *Pool) ShowNodeAd(c *route.Call) (any, error) {
	name, err := p.nodeName(c)
	if err != nil {
		return nil, err
	}
	d := NodeAd{Version: document.Version, Node: name}
	q := &wire.AdQuery{Type: "Machine", Limit: 1,
		Constraint: roost.AttrName + " == " + classad.StringValue(name).String()}
	err = ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		stream, err := s.Ads(ctx, q)
		return drain(stream, err, func(text *wire.AdText) error {
			ad, err := classad.Parse(text.GetAd())
			if err != nil {
				return fmt.Errorf("ad of %s: %w: %w", name, roost.Internal, err)
			}
			if _, desktop := ad.Lookup(roost.AttrOwnerBusy); desktop {
				for _, attribute := range presence() {
					ad.Delete(attribute)
				}
			}
			d.Text = ad.Old()
			d.Ad, err = ad.MarshalJSON()
			return err
		})
	})
	if err == nil && d.Ad == nil {
		return nil, fmt.Errorf("node %s: %w: it has no ad now", name, roost.NotFound)
	}
	return d, err
}

// NodeEvents is what became of a machine in a time.
type NodeEvents struct {
	Version int         `json:"v"`
	Node    string      `json:"node"`
	Events  []NodeEvent `json:"events"`
	Days    int         `json:"-"`
}

// NodeEvent is a change of a machine. When its owner uses it is in none.
type NodeEvent struct {
	Time   string  `json:"time"`
	What   string  `json:"what"` // added, updated, removed, drained or undrained
	Class  string  `json:"class,omitempty"`
	CPUs   float64 `json:"cpus"`
	GPUs   int     `json:"gpus"`
	Memory int64   `json:"memory"`
}

// ShowNodeEvents returns what became of a machine, the newest first, by the accounts of
// the pool.
func (p *Pool) ShowNodeEvents(c *route.Call) (any, error) {
	name, err := p.nodeName(c)
	if err != nil {
		return nil, err
	}
	f, q, err := usageQuery(c, time.Now())
	if err != nil {
		return nil, err
	}
	l := NodeEvents{Version: document.Version, Node: name, Events: []NodeEvent{}, Days: f.Days}
	q = query.Query{Report: query.Machines, From: q.From, To: q.To, Node: name}
	err = eachAccountsLine(c, q, reportPatience, func(m *accounting.MachineEvent) error {
		l.Events = append(l.Events, NodeEvent{Time: document.Timestamp(int64(m.Time) * 1e6), What: changeText(m.What),
			Class: m.Class, CPUs: m.Capacity.CPU.Cores(), GPUs: m.Capacity.GPUs, Memory: int64(m.Capacity.Memory)})
		return nil
	})
	slices.Reverse(l.Events)
	return l, err
}

func changeText(what accounting.MachineChange) string {
	return map[accounting.MachineChange]string{accounting.MachineAdded: "added", accounting.MachineUpdated: "updated",
		accounting.MachineRemoved: "removed", accounting.MachineDrained: "drained",
		accounting.MachineUndrained: "undrained"}[what]
}

// nodeName returns the name of the machine in the path of a call, as its ad has it.
func (p *Pool) nodeName(c *route.Call) (string, error) {
	s, err := p.snapshot(c)
	if err != nil {
		return "", err
	}
	i, err := s.indexOf(c.PathValue("node"))
	if err != nil {
		return "", err
	}
	return s.nodes[i].Name, nil
}

// indexOf finds a machine by its name, without regard to case.
func (s *poolSnapshot) indexOf(name string) (int, error) {
	i := slices.IndexFunc(s.nodes, func(n poolNode) bool { return strings.EqualFold(n.Name, name) })
	if i < 0 {
		return 0, fmt.Errorf("node %.80q: %w: there is none of that name; see roost nodes", name, roost.NotFound)
	}
	return i, nil
}
