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
	Form    ObjectForm

	raw []json.RawMessage
}

// MarshalJSON writes the document of the command that lists the same.
func (l ObjectList[T]) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"v": document.Version, l.Name: l.raw})
}

// RowList returns the objects as the negotiator wrote them.
func (l ObjectList[T]) RowList() route.RowTable {
	return route.RowTable{Rows: l.raw, Columns: route.Columns[AttributedObject[T]]()}
}

// listObjects returns the view of the objects of a kind.
func listObjects[T any](kind ledger.ObjectKind, name string) func(*route.Call) (any, error) {
	return func(c *route.Call) (any, error) {
		l := ObjectList[T]{Name: name, Form: ObjectForm{Path: name, Fields: formOf(kind)}}
		if c.Session != nil {
			l.Form.Fresh = c.Session.IsFresh(time.Now())
		}
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
	Kind          ledger.ObjectKind
	View          func(*route.Call) (any, error)
}

// Set makes or changes an object of the kind. Missing fields stay as they are, and null
// removes a field. Who may do that, the negotiators decide.
func (o ObjectRoute) Set(c *route.Call) error {
	var object json.RawMessage
	if err := c.Decode(&object, nil); err != nil {
		return err
	}
	c.Note("object", object)
	return changeCell(c, &wire.CellRequest{Verb: string(ledger.VerbSet), Kind: string(o.Kind), Object: object})
}

// Remove removes an object of the kind.
func (o ObjectRoute) Remove(c *route.Call) error {
	return changeCell(c, &wire.CellRequest{Verb: string(ledger.VerbRemove), Kind: string(o.Kind),
		Name: c.PathValue("name")})
}

// changeObject has the negotiators change what they keep. The audit line has what was
// there before.
func changeObject(c *route.Call, r *wire.CellRequest) error {
	var before json.RawMessage
	if showCell(c, r.GetKind(), &before) == nil {
		c.Note("before", before)
	}
	return ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		_, err := s.Cell(ctx, r)
		return err
	})
}

// ObjectRoutes lists what administrators keep of the cell.
func ObjectRoutes() []ObjectRoute {
	return []ObjectRoute{
		{"quotas", "quotas of users and groups", ledger.KindQuota,
			listObjects[ledger.BandQuota](ledger.KindQuota, "quotas")},
		{"groups", "accounting groups", ledger.KindGroup,
			listObjects[ledger.AccountingGroup](ledger.KindGroup, "groups")},
		{"queues", "queues", ledger.KindQueue,
			listObjects[ledger.QueuePolicy](ledger.KindQueue, "queues")},
		{"limits", "concurrency limits", ledger.KindLimit,
			listObjects[ledger.ConcurrencyLimit](ledger.KindLimit, "limits")},
		{"drains", "nodes that get no new tasks", ledger.KindDrain,
			listObjects[ledger.MachineDrain](ledger.KindDrain, "drains")},
		{"reservations", "reservations of nodes and amounts", ledger.KindReservation,
			listObjects[ledger.AdvanceReservation](ledger.KindReservation, "reservations")},
		{"admins", "administrators", ledger.KindAdmin,
			listObjects[ledger.AdminRights](ledger.KindAdmin, "admins")},
	}
}

// ShareList is how all submitters stand by fair share.
type ShareList struct {
	Version int `json:"v"`
	ledger.ShareReport

	Layout ListLayout `json:"-"`
}

// Shares shows how all submitters stand.
func Shares(c *route.Call) (any, error) {
	l := ShareList{Version: document.Version}
	layout, by, err := layoutOf(c, shareColumns(), func(u *ledger.SubmitterUsage) string { return u.Name })
	if err != nil {
		return nil, err
	}
	l.Layout = layout
	err = showCell(c, "shares", &l.ShareReport)
	if by != nil && err == nil {
		err = by.begin(max(len(l.Submitters), 1), "")
		for _, u := range l.Submitters {
			by.add(u)
		}
		l.Submitters, _ = by.rows()
	}
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
