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

// permittedQuery reads a question, and restricts it to what its asker may read: their own
// jobs. Administrators, and root on this node or a central manager, may read everything.
func (s *reportService) permittedQuery(ctx context.Context, req *wire.AccountingQuery) (q query.Query, err error) {
	p, known := peer.FromContext(ctx)
	if !known {
		return q, fmt.Errorf("report: %w", roost.PermissionDenied)
	}
	user, node, _ := strings.Cut(req.GetWho(), "@")
	if user == "" || node == "" || !p.Local && node != p.Name {
		return q, fmt.Errorf("report: %w: %s asks for %.80q", roost.PermissionDenied, p, req.GetWho())
	}
	if q, err = query.Parse(req.GetQuery()); err != nil {
		return q, err
	}
	if q.Owner == query.Self {
		q.Owner = user
	}
	isTrusted := req.GetTrusted() && (p.Local || p.Plays(peer.Negotiator) || p.Plays(peer.Accountant))
	if isTrusted || !query.IsOwn(q.Report) || q.Owner == user && q.Host == node {
		return q, nil
	}
	if q.Owner != user {
		admin, err := s.isAdmin(ctx, req.GetWho())
		if err != nil {
			return q, err
		}
		if admin {
			return q, nil
		}
	}
	if q.Owner != "" && q.Owner != user {
		return q, fmt.Errorf("report: %w: %s may read about %s's own jobs only; an administrator may read everybody's",
			roost.PermissionDenied, req.GetWho(), user)
	}
	q.Owner = user
	return q, nil
}

// adminTimeout bounds how long a negotiator may take to say who administers.
const adminTimeout = 3 * time.Second

// adminRights is an object of kind admin, as the negotiators have it.
type adminRights struct {
	User         string   `json:"who"`
	Capabilities []string `json:"capabilities"`
}

// isAdmin asks the negotiators whether a user administers the jobs of all users.
func (s *reportService) isAdmin(ctx context.Context, who string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	err := fmt.Errorf("negotiator: %w: the node file names none", roost.Unavailable)
	for _, address := range s.node.Negotiators {
		var document []byte
		if document, err = s.adminList(ctx, address); err != nil {
			continue
		}
		var list []adminRights
		if err := json.Unmarshal(document, &list); err != nil {
			return false, fmt.Errorf("administrators: %w", err)
		}
		user, _, _ := strings.Cut(who, "@")
		return slices.ContainsFunc(list, func(a adminRights) bool {
			return (a.User == who || a.User == user) &&
				(slices.Contains(a.Capabilities, "all") || slices.Contains(a.Capabilities, "jobs"))
		}), nil
	}
	return false, fmt.Errorf("report: %w: whether %s administers is not known now: %w", roost.Unavailable, who, err)
}

func (s *reportService) adminList(ctx context.Context, address string) ([]byte, error) {
	conn, err := rpc.Dial(address, s.identity, peer.Negotiator)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	reply, err := wire.NewNegotiatorClient(conn).Cell(ctx, &wire.CellRequest{Verb: "show", Kind: "admin",
		Who: "accountant@" + s.node.Name})
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
