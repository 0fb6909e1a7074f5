package negotiator

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/share"
)

// stand is how the pool stands, for those who ask.
type stand struct {
	total    roost.Resources                     // of all machines
	free     roost.Resources                     // of that: what no claim has
	held     map[share.Submitter]roost.Resources // by claims and grants
	wants    map[share.Submitter]bool            // has requests that wait
	machines func(name string) bool              // whether there is a machine of that name
}

// Shares is how submitters stand.
type Shares struct {
	Cores      float64 `json:"cores"`      // of the pool
	Free       float64 `json:"free_cores"` // of those, in no claim
	HalfLife   float64 `json:"half_life_seconds"`
	Submitters []Share `json:"submitters"` // the best priority first
}

// Share is how one submitter stands. Cores are those that its dominant share is worth.
type Share struct {
	Name      string   `json:"name"`
	Group     string   `json:"group,omitempty"`
	User      string   `json:"user"`
	Effective float64  `json:"effective_priority"` // smaller is better
	Real      float64  `json:"real_priority"`
	Factor    float64  `json:"factor"`
	Floor     *float64 `json:"floor,omitempty"`   // cores
	Ceiling   *float64 `json:"ceiling,omitempty"` // cores
	Cores     float64  `json:"cores"`             // in use now
	Hours     float64  `json:"core_hours"`        // used in all
	Part      float64  `json:"share"`             // of the pool: what fair share would give if all who use or want something wanted all of it
	Could     float64  `json:"could_get_cores"`   // more than it has: what is free, or due to it, within its ceiling and its group's quota
	Waits     bool     `json:"waits"`             // it wants more now
}

// shares works out how everybody stands who has ever used the pool, or wants to. One who asks for nothing now is told what it would be if it did.
func (p *stand) shares(now time.Time, l *ledger.Ledger) Shares {
	all := slices.Concat(l.Book().Submitters(), slices.Collect(maps.Keys(p.held)), slices.Collect(maps.Keys(p.wants)))
	slices.SortFunc(all, share.Submitter.Compare)
	all = slices.Compact(all)
	out := Shares{Cores: p.total.CPU.Cores(), Free: max(0, p.free.CPU.Cores()), HalfLife: l.Book().HalfLife().Seconds(), Submitters: []Share{}}
	sum := 0.0 // Σ 1/π of those who use or want something
	for _, s := range all {
		sh := p.share(now, l, s)
		if sh.active() {
			sum += 1 / sh.Effective
		}
		out.Submitters = append(out.Submitters, sh)
	}
	for i := range out.Submitters {
		sh := &out.Submitters[i]
		with := sum
		if !sh.active() {
			with += 1 / sh.Effective
		}
		sh.Part = 1 / sh.Effective / with
		sh.Could = p.could(l, sh, out)
	}
	slices.SortFunc(out.Submitters, func(a, b Share) int {
		return cmp.Or(cmp.Compare(a.Effective, b.Effective), strings.Compare(a.Name, b.Name))
	})
	return out
}

func (s *Share) active() bool { return s.Cores > 0 || s.Waits }

func (p *stand) share(now time.Time, l *ledger.Ledger, who share.Submitter) Share {
	a := l.Book().Account(now, who)
	sh := Share{
		Name: who.String(), Group: who.Group, User: who.Owner, Effective: l.Book().Effective(now, who), Real: l.Book().Real(now, who), Factor: a.Factor,
		Cores: share.Weight(p.held[who], p.total), Hours: a.Used / 3600, Waits: p.wants[who],
	}
	floor, ceiling := l.FloorCeiling(who)
	if floor > 0 {
		sh.Floor = &floor
	}
	if !math.IsInf(ceiling, 1) {
		sh.Ceiling = &ceiling
	}
	return sh
}

// could is how much more a submitter could get if it asked for as much as it could.
func (p *stand) could(l *ledger.Ledger, sh *Share, out Shares) float64 {
	more := max(out.Free, sh.Part*out.Cores-sh.Cores, 0)
	if sh.Floor != nil {
		more = max(more, *sh.Floor-sh.Cores)
	}
	if sh.Ceiling != nil {
		more = min(more, *sh.Ceiling-sh.Cores)
	}
	for name := sh.Group; name != ""; {
		g, known := l.Group(name)
		if known && g.Cores != nil && !g.AcceptSurplus && !l.On(ledger.AcceptSurplusEverywhere) {
			used := 0.0
			for s, held := range p.held {
				if s.Group == name || strings.HasPrefix(s.Group, name+".") {
					used += share.Weight(held, p.total)
				}
			}
			more = min(more, float64(*g.Cores)/1000-used)
		}
		name = (ledger.Group{Name: name}).Parent()
	}
	return max(0, min(more, out.Cores-sh.Cores))
}

// know refuses a command about a machine that the pool has not.
func (p *stand) know(l *ledger.Ledger, c *ledger.Command) error {
	for _, name := range l.Nodes(c) {
		if !p.machines(name) {
			return fmt.Errorf("%s: %w: no node of that name is in the pool; roost nodes lists them, and --force sets it nevertheless", name, roost.NotFound)
		}
	}
	return nil
}
