package negotiator

import (
	"context"
	"encoding/json"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// registry is what administration needs of whoever keeps the ledger. Where this negotiator does not lead both fail with roost.Unavailable.
type registry interface {
	// inspect lets look read the ledger, and how the pool stands. What look keeps it copies.
	inspect(ctx context.Context, look func(now time.Time, l *ledger.Ledger, p *stand)) error
	// command has a command committed, and returns why it was refused, or that it cannot be known what became of it.
	command(ctx context.Context, c ledger.Command) error
}

// administration answers questions about the cell, and takes what administrators wish.
type administration struct {
	registry
	name     string // of this node
	standing *standing
	dial     func(address string) (*grpc.ClientConn, error) // to another negotiator
}

// cellPatience bounds how long a follower waits for the leader.
const cellPatience = 2500 * time.Millisecond

// answer serves one request, here or by the leader.
func (a *administration) answer(ctx context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	req = proto.CloneOf(req)
	if err := a.caller(ctx, req); err != nil {
		return nil, err
	}
	if p, _ := a.standing.look(); !p.leads {
		return a.pass(ctx, p, req)
	}
	if req.GetVerb() == "show" {
		return a.show(ctx, req)
	}
	return &wire.CellReply{}, a.change(ctx, req)
}

// caller settles who asks. A schedd on another node speaks for users of its own node, and who is root there is nobody special here; a negotiator has
// looked already; on this node the daemons' own user may say what he likes, as he could write the log.
func (a *administration) caller(ctx context.Context, req *wire.CellRequest) error {
	p, ok := auth.FromContext(ctx)
	_, node, _ := strings.Cut(req.GetWho(), "@")
	switch {
	case !ok:
		return fmt.Errorf("cell: %w: nobody knows who asks", roost.Unauthenticated)
	case p.Local && req.GetWho() == "":
		name := strconv.FormatUint(uint64(p.UID), 10)
		if u, err := user.LookupId(name); err == nil {
			name = u.Username
		}
		req.Who, req.Trusted = name+"@"+a.name, true
	case p.Local || p.Name == a.name || p.Plays(auth.Negotiator):
	case node != p.Name:
		return fmt.Errorf("cell: %w: %s asks for %q, who is of another node", roost.PermissionDenied, p.Name, req.GetWho())
	default:
		req.Trusted = false
	}
	return nil
}

// pass asks the leader, once: what has been passed on already comes back to whoever knows better where to go next.
func (a *administration) pass(ctx context.Context, p position, req *wire.CellRequest) (*wire.CellReply, error) {
	if req.GetPassed() || p.leader == "" {
		return nil, fmt.Errorf("negotiator %s: %w: no negotiator leads that it knows of; most of them have to reach each other: see roost doctor", a.name, roost.Unavailable)
	}
	conn, err := a.dial(p.leader)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, cellPatience)
	defer cancel()
	req.Passed = true
	reply, err := wire.NewNegotiatorClient(conn).Cell(ctx, req)
	return reply, rpc.FromStatus(err)
}

// change has what an administrator wishes committed.
func (a *administration) change(ctx context.Context, req *wire.CellRequest) error {
	c := ledger.Command{
		Who: req.GetWho(), Trusted: req.GetTrusted(), Verb: ledger.Verb(req.GetVerb()), Kind: ledger.Kind(req.GetKind()), Name: req.GetName(),
		Object: req.GetObject(), Whole: req.GetWhole(), Fresh: req.GetFresh(), Unsure: req.GetUnsure(), Basis: req.GetBasis(),
	}
	var refused error
	if err := a.inspect(ctx, func(_ time.Time, l *ledger.Ledger, p *stand) {
		if refused = l.Check(&c); refused == nil && c.Verb == ledger.Set && !req.GetStrange() {
			refused = p.know(l, &c)
		}
	}); err != nil {
		return err
	}
	if refused != nil {
		return refused
	}
	return a.command(ctx, c)
}

// show answers a question.
func (a *administration) show(ctx context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	var answer any
	var err error
	var digest []byte
	if ierr := a.inspect(ctx, func(now time.Time, l *ledger.Ledger, p *stand) {
		answer, err = paper(now, l, p, req)
		digest = l.Digest(ledger.Kind(req.GetKind()))
	}); ierr != nil {
		return nil, ierr
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(answer)
	return &wire.CellReply{Document: text, Digest: digest}, err
}

// What can be shown beside the objects of the ledger.
const (
	showShares       = "shares"
	showSettings     = "settings"
	showCapabilities = "capabilities"
)

// paper is what a question is answered with, to be written as JSON.
func paper(now time.Time, l *ledger.Ledger, p *stand, req *wire.CellRequest) (any, error) {
	switch kind := ledger.Kind(req.GetKind()); {
	case req.GetKind() == showShares:
		return p.shares(now, l), nil
	case req.GetKind() == showSettings:
		return settings(l), nil
	case req.GetKind() == showCapabilities:
		return ledger.Capabilities(), nil
	case slices.Contains(ledger.Kinds(), kind):
		all := l.Objects(kind)
		if name := req.GetName(); name != "" {
			all = slices.DeleteFunc(all, func(o ledger.Object) bool { return o.Name != name })
			if len(all) == 0 {
				return nil, fmt.Errorf("%s %s: %w: there is none of that name", kind, name, roost.NotFound)
			}
		}
		return all, nil
	}
	return nil, fmt.Errorf("%q: %w: nothing of that kind can be shown", req.GetKind(), roost.Invalid)
}

// Setting is one setting of the cell, for programs and people.
type Setting struct {
	Name    string   `json:"name"`
	Value   string   `json:"value"`
	Default string   `json:"default"`
	Form    string   `json:"form"`
	Choices []string `json:"choices,omitempty"`
	What    string   `json:"what"`
	By      string   `json:"set_by,omitempty"`
}

func settings(l *ledger.Ledger) []Setting {
	by := map[string]string{}
	for _, o := range l.Objects(ledger.KindSetting) {
		by[o.Name] = o.By
	}
	var all []Setting
	for _, r := range ledger.Settings() {
		all = append(all, Setting{r.Name, l.Text(r.Name), r.Default, string(r.Form), r.Choices, r.What, by[r.Name]})
	}
	return all
}
