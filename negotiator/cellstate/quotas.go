package cellstate

import (
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// Quotas are checked at submission, when the schedd asks the leader. A schedd that does
// not ask, and puts its requests into a band by itself, could preempt everyone below. So
// in prod bands a plan grants no more than the quotas leave, by what claims hold
// according to machines and not schedds. That does not bound an honest schedd: what it
// was admitted holds no more in total, unless the quota was lowered since.

// Payer is the submitter and band that claims are counted for.
type Payer struct {
	fairshare.Submitter
	Band roost.PriorityBand
}

// Held is what claims hold.
type Held struct {
	roost.Resources
	Claims int
}

// Add adds more to h, n times.
func (h Held) Add(more roost.Resources, n int) Held {
	if n < 0 {
		return Held{h.Resources.Sub(more), h.Claims + n}
	}
	return Held{h.Resources.Add(more), h.Claims + n}
}

// of returns a dimension of a quota, in its unit.
func (h Held) of(dimension string) int {
	switch dimension {
	case "cpus":
		return int(h.CPU)
	case "memory":
		return int(h.Memory)
	case "disk":
		return int(h.Disk)
	case "gpus":
		return h.GPUs
	}
	return h.Claims
}

// quota applies quotas to the requests in prod bands.
func (p *CellState) quota(l *ledger.Ledger, s *match.Snapshot) {
	if p.Prod == nil {
		return
	}
	strict, held, known := l.SettingText(ledger.SettingDefaultQuota) == "none", map[Payer]Held(nil),
		map[Payer][]ledger.BandQuota{}
	for _, r := range s.Requests {
		for _, part := range append([]*match.Request{r}, r.Parts...) {
			if !p.Policy.HasRunLimits {
				part.RunLimits = nil
			}
			if !part.Band.IsProd() {
				continue
			}
			who := Payer{part.Submitter, part.Band}
			quotas, looked := known[who]
			if !looked {
				quotas = l.QuotasFor(p.Now, who.Owner, who.Group, who.Band)
				known[who] = quotas
			}
			if len(quotas) == 0 && strict {
				none := who.Owner + " has no quota in band " + who.Band.String()
				p.holdTo(s, part, match.ConcurrencyLimit{Label: none}, none, 1)
			}
			for _, q := range quotas {
				if held == nil {
					held = p.Prod()
				}
				p.holdToQuota(s, part, q, held)
			}
		}
	}
}

// holdToQuota applies the dimensions of one quota that a request takes something of.
func (p *CellState) holdToQuota(s *match.Snapshot, r *match.Request, q ledger.BandQuota, held map[Payer]Held) {
	each := Held{Claims: 1}
	if r.Class != nil {
		each.Resources = r.Class.Resources
	}
	who := q.SubjectText()
	if q.User == ledger.EachUser {
		who += "/" + r.Submitter.Owner
	}
	for _, b := range q.Max.Bounds() {
		takes := each.of(b.Name)
		if takes <= 0 {
			continue
		}
		limit := match.ConcurrencyLimit{
			Total: int(b.Value), Bytes: b.Name == "memory" || b.Name == "disk", Cores: b.Name == "cpus",
			Label: "quota of " + q.SubjectText() + " in band " + q.Band + ", " + b.Name,
		}
		key := who + "/" + q.Band + "/" + b.Name
		if _, known := s.Limits["quota/"+key]; !known {
			limit.Used = quotaUse(q, r, held).of(b.Name)
		}
		p.holdTo(s, r, limit, key, takes)
	}
}

// holdTo adds a limit to a snapshot, unless it is there, and applies it to a request.
func (p *CellState) holdTo(s *match.Snapshot, r *match.Request, limit match.ConcurrencyLimit, key string, takes int) {
	key = "quota/" + key
	if s.Limits == nil {
		s.Limits = map[string]match.ConcurrencyLimit{}
	}
	if _, known := s.Limits[key]; !known {
		s.Limits[key] = limit
	}
	r.RunLimits = append(r.RunLimits, match.LimitRequest{Limit: key, Count: takes})
}

// quotaUse returns what counts for a quota.
func quotaUse(q ledger.BandQuota, r *match.Request, held map[Payer]Held) (sum Held) {
	for who, h := range held {
		if who.Band != r.Band {
			continue
		}
		if q.Group != "" && (who.Group == q.Group || strings.HasPrefix(who.Group, q.Group+".")) ||
			q.Group == "" && who.Owner == r.Submitter.Owner {
			sum = sum.Add(h.Resources, h.Claims)
		}
	}
	return sum
}
