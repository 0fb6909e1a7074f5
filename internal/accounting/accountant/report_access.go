package accountant

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// accountsCaller is for whom a schedd asks.
type accountsCaller struct {
	who, user, node string
	isTrusted       bool // root on this node or on a central manager
}

// callerOf returns for whom a call is made. A schedd speaks for the users of its node.
func callerOf(ctx context.Context, who string, trusted bool) (accountsCaller, error) {
	p, known := peer.FromContext(ctx)
	if !known {
		return accountsCaller{}, fmt.Errorf("accounts: %w", roost.PermissionDenied)
	}
	user, node, _ := strings.Cut(who, "@")
	if user == "" || node == "" || !p.Local && node != p.Name {
		return accountsCaller{}, fmt.Errorf("accounts: %w: %s asks for %.80q", roost.PermissionDenied, p, who)
	}
	return accountsCaller{who: who, user: user, node: node,
		isTrusted: trusted && (p.Local || p.Plays(peer.Negotiator) || p.Plays(peer.Accountant))}, nil
}

// permittedQuery reads a question, and restricts it to what its asker may read: their own
// jobs. Administrators, and root on this node or a central manager, may read everything.
func (s *reportService) permittedQuery(ctx context.Context, req *wire.AccountingQuery) (q query.Query, err error) {
	caller, err := callerOf(ctx, req.GetWho(), req.GetTrusted())
	if err != nil {
		return q, err
	}
	if q, err = query.Parse(req.GetQuery()); err != nil {
		return q, err
	}
	if q.Owner == query.Self {
		q.Owner = caller.user
	}
	if caller.isTrusted || !query.IsOwn(q.Report) || q.Owner == caller.user && q.Host == caller.node {
		return q, nil
	}
	if q.Owner != caller.user {
		admin, err := s.hasCapability(ctx, caller.who, "jobs", "accounts")
		if err != nil {
			return q, err
		}
		if admin {
			return q, nil
		}
	}
	if q.Owner != "" && q.Owner != caller.user {
		return q, fmt.Errorf("report: %w: %s may read about %s's own jobs only; an administrator may read everybody's",
			roost.PermissionDenied, caller.who, caller.user)
	}
	q.Owner = caller.user
	return q, nil
}

// mayChange returns why a user may not change the accounts.
func (s *reportService) mayChange(ctx context.Context, caller accountsCaller) error {
	if caller.isTrusted {
		return nil
	}
	may, err := s.hasCapability(ctx, caller.who, "accounts")
	if err == nil && !may {
		err = fmt.Errorf("accounts: %w: %s lacks the capability \"accounts\"; root on a central manager gives it "+
			"with: "+
			"roost admin give %s accounts", roost.PermissionDenied, caller.who, caller.who)
	}
	return err
}

// adminTimeout bounds how long a negotiator may take to say who administers.
const adminTimeout = 3 * time.Second

// adminObject is an object of kind admin, as the negotiators show it.
type adminObject struct {
	Rights struct {
		User         string   `json:"who"`
		Capabilities []string `json:"capabilities"`
	} `json:"object"`
}

// hasCapability asks the negotiators whether a user has one of some capabilities.
func (s *reportService) hasCapability(ctx context.Context, who string, wanted ...string) (bool, error) {
	var list []adminObject
	if err := s.askCell(ctx, "admin", &list); err != nil {
		return false, fmt.Errorf("accounts: %w: whether %s administers is not known now: %w", roost.Unavailable, who,
			err)
	}
	return anyHasCapability(list, who, append(wanted, "all")), nil
}

func anyHasCapability(list []adminObject, who string, wanted []string) bool {
	user, _, _ := strings.Cut(who, "@")
	return slices.ContainsFunc(list, func(a adminObject) bool {
		return (a.Rights.User == who || a.Rights.User == user) &&
			slices.ContainsFunc(a.Rights.Capabilities, func(c string) bool { return slices.Contains(wanted, c) })
	})
}

// askCell asks the negotiators, one after the other, for what they have of a kind.
func (a *accountant) askCell(ctx context.Context, kind string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	err := fmt.Errorf("negotiator: %w: the node file names none", roost.Unavailable)
	for _, address := range a.node.Negotiators {
		var document []byte
		if document, err = a.showCell(ctx, address, kind); err != nil {
			continue
		}
		if err := json.Unmarshal(document, into); err != nil {
			return fmt.Errorf("what the negotiator says of %s: %w", kind, err)
		}
		return nil
	}
	return err
}

func (a *accountant) showCell(ctx context.Context, address, kind string) ([]byte, error) {
	conn, err := rpc.Dial(address, a.identity, peer.Negotiator)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	reply, err := wire.NewNegotiatorClient(conn).Cell(ctx, &wire.CellRequest{Verb: "show", Kind: kind,
		Who: "accountant@" + a.node.Name})
	return reply.GetDocument(), rpc.FromStatus(err)
}

// states tells how each schedd is followed.
func (a *accountant) states() []query.SourceLine {
	a.schedds.mu.Lock()
	defer a.schedds.mu.Unlock()
	var lines []query.SourceLine
	for host, f := range a.schedds.all {
		lines = append(lines, query.SourceLine{Host: host, Ingested: f.state.ingested.Load(),
			Refused: f.state.refused.Load(), Error: f.state.lastError()})
	}
	slices.SortFunc(lines, func(a, b query.SourceLine) int { return strings.Compare(a.Host, b.Host) })
	return lines
}
