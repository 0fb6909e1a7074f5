package picture

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// What runs beyond a soft limit may be displaced (match/beyond.go). The schedds say how much runs of each user, group and queue, and the machines' ads whose claims
// there are: of those as many as are too many are beyond, the youngest first. Of which Unix group a claim's owner was at submit no ad tells; so such limits only
// say who comes last.

// excess is by how much a soft limit is gone beyond.
type excess struct {
	*runLimit
	by int
}

// CountsAll reports whether only so much runs at once of all queues.
func CountsAll(p ledger.Pool) bool {
	return p.Running.Any() || p.RunningAmounts.Any() || p.RunningSoft.Any() || p.RunningSoftAmounts.Any()
}

// held is a claim, and on which machine.
type heldClaim struct {
	machine string
	*match.Claim
}

// beyond are the claims that are beyond soft limits, and what is said to those who lose them.
func (p *Picture) beyond(excesses []excess) map[match.ClaimKey]string {
	if len(excesses) == 0 {
		return nil
	}
	var claims []heldClaim
	for _, m := range p.Machines {
		for i := range m.Claims {
			if one := &m.Claims[i]; !one.Leaving {
				claims = append(claims, heldClaim{m.Name, one})
			}
		}
	}
	slices.SortFunc(claims, func(a, b heldClaim) int {
		return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.machine, b.machine), cmp.Compare(b.ID, a.ID))
	})
	slices.SortFunc(excesses, func(a, b excess) int { return cmp.Compare(a.Limit, b.Limit) })
	all := map[match.ClaimKey]string{}
	for _, e := range excesses {
		there := 0
		for _, one := range claims {
			there += e.takes(one)
		}
		e.by = min(e.by, there-e.most) // what the schedds count and no machine shows is on its way
		for _, one := range claims {
			if e.by <= 0 {
				break
			}
			if takes := e.takes(one); takes > 0 && one.Since != 0 {
				all[match.ClaimKey{Machine: one.machine, ID: one.ID}] = e.text()
				e.by -= takes
			}
		}
	}
	return all
}

// takes is how much of the limit a claim takes; 0 if it is not counted there.
func (l *runLimit) takes(c heldClaim) int {
	party := ledger.Party{User: c.Submitter.Owner, Group: c.Submitter.Group}
	if l.Of == ledger.OfUnixGroup || l.queue != "" && c.Queue != l.queue || !l.Bound.Counts(party) {
		return 0
	}
	if l.of == "" {
		return 1
	}
	return int(ledger.AmountIn(c.Resources, l.of))
}

// text says to somebody which soft limit he is beyond.
func (e excess) text() string {
	at, what := "the pool", "jobs"
	if e.queue != "" {
		at = "queue " + e.queue
	}
	if e.of != "" {
		what = ledger.ResourceName(e.of)
	}
	return fmt.Sprintf("beyond the soft limit on running %s of %s in %s", what, ledger.Bound{Of: e.Of, Name: e.Name, Named: e.Name != ""}.Whose(), at)
}
