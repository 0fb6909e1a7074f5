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
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// ledgerAdmin is access to the ledger for administration. On a negotiator that does not
// lead both methods fail with roost.Unavailable.
type ledgerAdmin interface {
	// viewLedger lets look read the ledger and the status of the pool. look must copy
	// what it retains.
	viewLedger(ctx context.Context, look func(now time.Time, l *ledger.Ledger, p *poolStatus)) error
	// commitCommand commits a command. It returns why the command was refused, or that
	// its outcome is unknown.
	commitCommand(ctx context.Context, c ledger.AdminCommand) error
}

// adminService answers queries about the cell, and executes administrators' commands.
type adminService struct {
	ledgerAdmin
	nodeName   string // name of this node
	leadership *leadership
	dial       func(address string) (*grpc.ClientConn, error) // connects to another negotiator
	secrets    *secretStore
}

// leaderCallTimeout bounds how long a follower waits for the leader.
const leaderCallTimeout = 2500 * time.Millisecond

// handleRequest serves one request, here or through the leader.
func (a *adminService) handleRequest(ctx context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	req = proto.CloneOf(req)
	if err := a.callerOf(ctx, req); err != nil {
		return nil, err
	}
	if p, _ := a.leadership.currentState(); !p.isLeader {
		return a.forwardToLeader(ctx, p, req)
	}
	if req.GetKind() == string(ledger.KindSecret) {
		return a.secrets.handle(ctx, req)
	}
	if req.GetVerb() == "show" {
		return a.showPolicy(ctx, req)
	}
	return &wire.CellReply{}, a.changePolicy(ctx, req)
}

// callerOf sets the caller of a request. A schedd on another node speaks for the users of
// its node, without special rights for root. A negotiator has already checked the caller.
// On this node the daemons' own user may set any caller, since it could also write the
// log.
func (a *adminService) callerOf(ctx context.Context, req *wire.CellRequest) error {
	p, ok := peer.FromContext(ctx)
	_, node, _ := strings.Cut(req.GetWho(), "@")
	switch {
	case !ok:
		return fmt.Errorf("cell: %w: the caller is unknown", roost.Unauthenticated)
	case p.Local && req.GetWho() == "":
		name := strconv.FormatUint(uint64(p.UID), 10)
		if u, err := user.LookupId(name); err == nil {
			name = u.Username
		}
		req.Who, req.Trusted = name+"@"+a.nodeName, true
	case p.Local || p.Name == a.nodeName || p.Plays(peer.Negotiator):
	case node != p.Name:
		return fmt.Errorf("cell: %w: %s asks for %q, a user of another node", roost.PermissionDenied, p.Name,
			req.GetWho())
	default:
		req.Trusted = false
	}
	return nil
}

// forwardToLeader forwards a request to the leader, once. A request that was forwarded
// before is returned to the caller, which knows better where to go next.
func (a *adminService) forwardToLeader(ctx context.Context, p leadershipState,
	req *wire.CellRequest) (*wire.CellReply, error) {
	if req.GetPassed() || p.leader == "" {
		return nil, fmt.Errorf("negotiator %s: %w: it knows no leader; a majority of the negotiators must reach "+
			"each other: see roost doctor", a.nodeName, roost.Unavailable)
	}
	conn, err := a.dial(p.leader)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, leaderCallTimeout)
	defer cancel()
	req.Passed = true
	reply, err := wire.NewNegotiatorClient(conn).Cell(ctx, req)
	return reply, rpc.FromStatus(err)
}

// changePolicy commits an administrator's command.
func (a *adminService) changePolicy(ctx context.Context, req *wire.CellRequest) error {
	c := ledger.AdminCommand{
		Who: req.GetWho(), Trusted: req.GetTrusted(), Verb: ledger.CommandVerb(req.GetVerb()),
		Kind: ledger.ObjectKind(req.GetKind()), Name: req.GetName(),
		Object: req.GetObject(), Whole: req.GetWhole(), Fresh: req.GetFresh(), Unsure: req.GetUnsure(),
		Basis: req.GetBasis(),
	}
	var refused error
	if err := a.viewLedger(ctx, func(_ time.Time, l *ledger.Ledger, p *poolStatus) {
		if refused = l.Check(&c); refused == nil && c.Verb == ledger.VerbSet && !req.GetStrange() {
			refused = p.checkMachineExists(l, &c)
		}
		if refused == nil && c.Verb == ledger.VerbSet {
			refused = ledger.CheckOversell(l, &c, p.Total)
		}
	}); err != nil {
		return err
	}
	if refused != nil {
		return refused
	}
	return a.commitCommand(ctx, c)
}

// showPolicy answers a query.
func (a *adminService) showPolicy(ctx context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	var answer any
	var err error
	var digest []byte
	if ierr := a.viewLedger(ctx, func(now time.Time, l *ledger.Ledger, p *poolStatus) {
		answer, err = reply(now, l, p, req)
		digest = l.Digest(ledger.ObjectKind(req.GetKind()))
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

// reply returns the answer to a query, to be written as JSON.
func reply(now time.Time, l *ledger.Ledger, p *poolStatus, req *wire.CellRequest) (any, error) {
	switch kind := ledger.ObjectKind(req.GetKind()); {
	case req.GetKind() == showShares:
		return p.Shares(now, l), nil
	case req.GetKind() == showSettings:
		return cellSettings(l), nil
	case req.GetKind() == showCapabilities:
		return ledger.Capabilities(), nil
	case slices.Contains(ledger.Kinds(), kind):
		all := l.Objects(kind)
		if name := req.GetName(); name != "" {
			all = slices.DeleteFunc(all, func(o ledger.PolicyObject) bool { return o.Name != name })
			if len(all) == 0 {
				return nil, fmt.Errorf("%s %s: %w: there is none of that name", kind, name, roost.NotFound)
			}
		}
		return all, nil
	}
	return nil, fmt.Errorf("%q: %w: nothing of that kind can be shown", req.GetKind(), roost.Invalid)
}

func cellSettings(l *ledger.Ledger) []ledger.CellSetting {
	by := map[string]string{}
	for _, o := range l.Objects(ledger.KindSetting) {
		by[o.Name] = o.SetBy
	}
	var all []ledger.CellSetting
	for _, r := range ledger.Settings() {
		all = append(all, ledger.CellSetting{Name: r.Name, Value: l.SettingText(r.Name), Default: r.Default,
			Form: string(r.Form), Choices: r.Choices, Description: r.Description, SetBy: by[r.Name]})
	}
	return all
}
