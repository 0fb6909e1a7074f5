package view

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// showCell asks the negotiators, through the schedd, for what they have of a kind.
func showCell(c *route.Call, kind string, into any) error {
	return ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		reply, err := s.Cell(ctx, &wire.CellRequest{Verb: "show", Kind: kind})
		if err != nil {
			return err
		}
		if err := json.Unmarshal(reply.GetDocument(), into); err != nil {
			return fmt.Errorf("%w: what the negotiator says of %s: %w", roost.Internal, kind, err)
		}
		return nil
	})
}

// AttributedObject is an object that administrators keep, with who has set it.
type AttributedObject[T any] struct {
	Name   string    `json:"name"`
	Object T         `json:"object"`
	By     string    `json:"set_by"`
	At     time.Time `json:"set_at"`
	Made   time.Time `json:"made_at"`
}

// ObjectList is all objects of a kind. Its JSON has them under the kind's name, as the
// negotiator wrote them.
type ObjectList[T any] struct {
	Name    string
	Objects []AttributedObject[T]

	raw []json.RawMessage
}

// MarshalJSON writes the document of the command that lists the same.
func (l ObjectList[T]) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"v": document.Version, l.Name: l.raw})
}

// listObjects returns the view of the objects of a kind.
func listObjects[T any](kind ledger.ObjectKind, name string) func(*route.Call) (any, error) {
	return func(c *route.Call) (any, error) {
		l := ObjectList[T]{Name: name}
		var text json.RawMessage
		err := showCell(c, string(kind), &text)
		if err == nil {
			err = json.Unmarshal(text, &l.raw)
		}
		if err == nil {
			err = json.Unmarshal(text, &l.Objects)
		}
		if l.raw == nil { // it was null
			l.raw = []json.RawMessage{}
		}
		return l, err
	}
}

// ObjectRoute is a kind of objects with its route and view.
type ObjectRoute struct {
	Path, Summary string
	View          func(*route.Call) (any, error)
}

// ObjectRoutes lists what administrators keep of the cell.
func ObjectRoutes() []ObjectRoute {
	return []ObjectRoute{
		{"quotas", "quotas of users and groups", listObjects[ledger.BandQuota](ledger.KindQuota, "quotas")},
		{"groups", "accounting groups", listObjects[ledger.AccountingGroup](ledger.KindGroup, "groups")},
		{"queues", "queues", listObjects[ledger.QueuePolicy](ledger.KindQueue, "queues")},
		{"limits", "concurrency limits", listObjects[ledger.ConcurrencyLimit](ledger.KindLimit, "limits")},
		{"drains", "nodes that get no new tasks", listObjects[ledger.MachineDrain](ledger.KindDrain, "drains")},
		{"reservations", "reservations of nodes and amounts",
			listObjects[ledger.AdvanceReservation](ledger.KindReservation, "reservations")},
		{"admins", "administrators", listObjects[ledger.AdminRights](ledger.KindAdmin, "admins")},
	}
}

// ShareList is how all submitters stand by fair share.
type ShareList struct {
	Version int `json:"v"`
	ledger.ShareReport
}

// Shares shows how all submitters stand.
func Shares(c *route.Call) (any, error) {
	l := ShareList{Version: document.Version}
	err := showCell(c, "shares", &l.ShareReport)
	if l.Submitters == nil {
		l.Submitters = []ledger.SubmitterUsage{}
	}
	return l, err
}

// Cell is the settings of the cell.
type Cell struct {
	Version  int                  `json:"v"`
	Settings []ledger.CellSetting `json:"settings"`
}

// ShowCell shows the settings of the cell.
func ShowCell(c *route.Call) (any, error) {
	cell := Cell{Version: document.Version}
	return cell, showCell(c, "settings", &cell.Settings)
}
