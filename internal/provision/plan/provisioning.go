package plan

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// Provisioning is all that a provisioner knows: its providers and their allocations.
// Demand goes to the providers in their order. Its methods fold in what has happened.
// What they have changed is in Changed until the journal has it.
type Provisioning struct {
	Providers   []*Provider
	Allocations map[string]*Allocation // by key
	Changed     ChangedRecords
	lookedAt    time.Time // when SeePilots was called last; zero: not since the start
}

// ChangedRecords names what has changed since it was written last.
type ChangedRecords struct {
	Providers   map[string]bool
	Allocations map[string]bool // of them those that are gone were forgotten
}

// NewProvisioning returns a provisioning without providers.
func NewProvisioning() *Provisioning {
	return &Provisioning{Allocations: map[string]*Allocation{}, Changed: newChanged()}
}

func newChanged() ChangedRecords { return ChangedRecords{map[string]bool{}, map[string]bool{}} }

// TakeChanged returns what has changed, for the journal, and begins anew.
func (v *Provisioning) TakeChanged() ChangedRecords {
	changed := v.Changed
	v.Changed = newChanged()
	return changed
}

// IsEmpty reports whether nothing has changed.
func (c *ChangedRecords) IsEmpty() bool { return len(c.Providers) == 0 && len(c.Allocations) == 0 }

// Provider returns a provider; nil if there is none of that name.
func (v *Provisioning) Provider(name string) *Provider {
	for _, p := range v.Providers {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// SetProviders replaces the settings of all providers, in their order. Those of a
// provider that is gone remain until its allocations have ended, and these are cancelled.
func (v *Provisioning) SetProviders(settings []provider.Settings) {
	var next []*Provider
	for _, s := range settings {
		p := v.Provider(s.Name)
		if p == nil {
			p = &Provider{}
		}
		if !reflect.DeepEqual(p.Settings, s) || p.History.Leaving {
			v.Changed.Providers[s.Name] = true
		}
		p.Settings, p.History.Leaving = s, false
		next = append(next, p)
	}
	for _, p := range v.Providers {
		if slices.Contains(next, p) {
			continue
		}
		gone := len(v.Of(p.Name, (*Allocation).isAlive)) == 0
		if !gone {
			next = append(next, p)
		}
		if gone || !p.History.Leaving {
			v.Changed.Providers[p.Name] = true
		}
		p.History.Leaving = true
	}
	v.Providers = next
}

func (a *Allocation) isAlive() bool { return a.State != Ended }

// Of returns the allocations of a provider for which a condition holds, the oldest first.
func (v *Provisioning) Of(name string, is func(*Allocation) bool) (list []*Allocation) {
	for _, a := range v.Allocations {
		if a.Provider == name && is(a) {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b *Allocation) int {
		return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.Key, b.Key))
	})
	return list
}

// Living returns the allocations of a provider that have not ended, the oldest first.
func (v *Provisioning) Living(provider string) []*Allocation {
	return v.Of(provider, (*Allocation).isAlive)
}

// change returns an allocation that has not ended, and marks it; nil if there is none.
func (v *Provisioning) change(key string) (*Allocation, *ProviderHistory) {
	a := v.Allocations[key]
	if a == nil || a.State == Ended {
		return nil, nil
	}
	v.Changed.Allocations[key] = true
	if p := v.Provider(a.Provider); p != nil {
		return a, &p.History
	}
	return a, &ProviderHistory{}
}

// changeHistory returns what is known of an allocation's provider, and marks it.
func (v *Provisioning) changeHistory(a *Allocation) *ProviderHistory {
	v.Changed.Providers[a.Provider] = true
	if p := v.Provider(a.Provider); p != nil {
		return &p.History
	}
	return &ProviderHistory{}
}

// Begin adds the allocation of a submit. The journal must have it before the submit runs.
func (v *Provisioning) Begin(key string, d Decision, now time.Time) *Allocation {
	if v.Allocations[key] != nil {
		panic("allocation " + key + " exists")
	}
	a := &Allocation{Key: key, Provider: d.Provider, Nodes: d.Nodes, Walltime: d.Walltime, For: d.Reason, Asked: now}
	v.Allocations[key] = a
	v.Changed.Allocations[key] = true
	v.changeHistory(a).LastSubmit = now
	return a
}

// SubmitTaken notes that the outer system has given the allocation an id.
func (v *Provisioning) SubmitTaken(key, id string, now time.Time) {
	a, _ := v.change(key)
	if a == nil {
		return
	}
	if a.OuterID == "" {
		a.OuterID = id
	}
	if a.State == Submitting {
		a.become(Queued)
		a.Queued = now
	}
	if h := v.changeHistory(a); h.Refusals > 0 {
		h.Refusals, h.LastError = 0, ""
	}
}

// SubmitRefused notes that the outer system has not taken the allocation, and has no job
// of its name.
func (v *Provisioning) SubmitRefused(key, text string, now time.Time) {
	a, _ := v.change(key)
	if a == nil || a.State != Submitting {
		return
	}
	text = oneLine(text)
	a.end(now, Refused, text)
	v.changeHistory(a).noteRefusal(now, text)
}

// SubmitUnanswered notes that nobody knows whether the outer system has taken the
// allocation. It has to be looked for by its key.
func (v *Provisioning) SubmitUnanswered(key, text string, now time.Time) {
	a, _ := v.change(key)
	switch {
	case a == nil:
	case mutant.Active(mutant.UnansweredForgotten):
		v.SubmitRefused(key, text, now)
	default:
		a.OuterText = oneLine(text)
	}
}

// oneLine is a message of a program on one line.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// SeePilots folds in which pilots are in the pool. Only a list that is whole may be
// given.
func (v *Provisioning) SeePilots(pilots []Pilot, now time.Time) {
	hasGap := v.lookedAt.IsZero() || now.Sub(v.lookedAt) > maxLookGap
	v.lookedAt = now
	live := map[string][]Pilot{}
	for _, p := range pilots {
		live[p.Key] = append(live[p.Key], p)
	}
	for key, a := range v.Allocations {
		if a.State == Ended {
			continue
		}
		if hasGap && !a.Unwatched && a.Joins == 0 {
			a.Unwatched = true
			v.Changed.Allocations[key] = true
		}
		v.seePilotsOf(a, live[key], now)
		v.seeFailing(a, live[key], now)
	}
}

// seeFailing takes in on which pilots of an allocation tasks fail. Their hosts get no
// pilots for a day. If it has no others, the allocation is to end.
func (v *Provisioning) seeFailing(a *Allocation, pilots []Pilot, now time.Time) {
	failing, why := 0, ""
	for _, p := range pilots {
		if p.Failing == "" {
			continue
		}
		failing++
		why = "tasks fail on its machine " + cmp.Or(p.Host, p.Name) + ": " + oneLine(p.Failing)
		if of := v.Provider(a.Provider); of != nil && p.Host != "" && !of.History.Excluded[p.Host].After(now) {
			v.ExcludeHost(a.Provider, p.Host, now)
		}
	}
	if failing > 0 && failing == len(pilots) && a.Failing == "" {
		a.Failing = why
		v.Changed.Allocations[a.Key] = true
	}
}

func (v *Provisioning) seePilotsOf(a *Allocation, pilots []Pilot, now time.Time) {
	n := len(pilots)
	if n == a.Live {
		return
	}
	v.Changed.Allocations[a.Key] = true
	a.run(now)
	if a.Joined.IsZero() {
		a.Joined = now
	}
	if p := v.Provider(a.Provider); p != nil && n > 0 {
		if digest := p.ShapeDigest(); p.History.Learnt == "" || p.History.LearntOf != digest {
			p.History.Learnt, p.History.LearntOf = emptyNodeAd(pilots[0].Ad).String(), digest
			v.Changed.Providers[p.Name] = true
		}
	}
	for _, p := range pilots {
		a.addHost(p.Host)
	}
	a.Joins, a.Live, a.Left = max(a.Joins, n), n, time.Time{}
	if n == 0 {
		a.Left = now
	}
}

// CancelOrdered notes that an allocation is being cancelled. The journal must have it
// before the cancelling runs.
func (v *Provisioning) CancelOrdered(d Decision, now time.Time) {
	a, _ := v.change(d.Key)
	if a == nil {
		return
	}
	if a.CancelAt.IsZero() {
		a.Reason = d.Reason
		if d.IsEarlyDeath {
			a.Outcome = EarlyDeath
			v.changeHistory(a).noteEarlyDeath(now, a)
		}
	}
	a.CancelAt = now
}

// Unanswered returns the allocations of a provider whose submit has no answer. They have
// to be looked for by their keys.
func (v *Provisioning) Unanswered(name string) []*Allocation {
	return v.Of(name, func(a *Allocation) bool { return a.State != Ended && a.OuterID == "" })
}

// NotFound notes that the outer system has no job with the key of an unanswered submit.
func (v *Provisioning) NotFound(key, text string, now time.Time) {
	a, _ := v.change(key)
	switch {
	case a == nil || a.OuterID != "" || a.Live > 0:
	case a.State == Submitting && !a.CancelAt.IsZero():
		a.end(now, Cancelled, a.Reason)
	case a.State == Submitting && a.OuterText == "": // no program has answered, as none has run
		a.end(now, Cancelled, "the provisioner ended before it was submitted")
	case a.State == Submitting:
		v.SubmitRefused(key, text, now)
	default:
		v.outerEnd(a, OuterStatus{Text: text}, now)
	}
}

// NoteSurplus notes which allocations nothing needs, as Plan has found.
func (v *Provisioning) NoteSurplus(surplus map[string]bool, now time.Time) {
	for key, a := range v.Allocations {
		if a.State == Ended || a.Surplus.IsZero() != surplus[key] {
			continue
		}
		v.Changed.Allocations[key] = true
		if a.Surplus = now; !surplus[key] {
			a.Surplus = time.Time{}
		}
	}
}

// Stop stops a provider: nothing is submitted, and what is queued there is cancelled.
func (v *Provisioning) Stop(name, reason string) {
	if p := v.Provider(name); p != nil {
		p.History.stop(reason)
		v.Changed.Providers[name] = true
	}
}

// Resume lets a stopped provider go on, and forgets what went wrong.
func (v *Provisioning) Resume(name string) {
	if p := v.Provider(name); p != nil {
		p.History.resume()
		v.Changed.Providers[name] = true
	}
}

// ExcludeHost gives a host of the outer system no more pilots for a day. Tasks fail there
// that work elsewhere.
func (v *Provisioning) ExcludeHost(name, host string, now time.Time) {
	if p := v.Provider(name); p != nil {
		p.History.exclude(host, now)
		v.Changed.Providers[name] = true
	}
}

// The bounds on what is remembered of allocations that have ended.
const (
	rememberedFor  = 2 * costWindow
	rememberedMost = 20 // of a provider, beyond that time
)

// Forget removes allocations that ended long ago.
func (v *Provisioning) Forget(now time.Time) {
	byProvider := map[string][]*Allocation{}
	for _, a := range v.Allocations {
		if a.State == Ended {
			byProvider[a.Provider] = append(byProvider[a.Provider], a)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byProvider)) {
		list := byProvider[name]
		slices.SortFunc(list, func(a, b *Allocation) int {
			return cmp.Or(b.EndedAt.Compare(a.EndedAt), cmp.Compare(a.Key, b.Key))
		})
		for i, a := range list {
			if i >= rememberedMost && now.Sub(a.EndedAt) > rememberedFor {
				delete(v.Allocations, a.Key)
				v.Changed.Allocations[a.Key] = true
			}
		}
	}
}

// NodeHours returns the node-hours of a provider in the last 24 hours, with what its
// allocations may take yet.
func (v *Provisioning) NodeHours(name string, now time.Time) (hours float64) {
	for _, a := range v.Allocations {
		if a.Provider == name {
			hours += a.hoursSince(now.Add(-costWindow), now)
		}
	}
	return hours
}

// Check returns what is wrong with the state, which is a mistake of this program.
func (v *Provisioning) Check() error {
	for key, a := range v.Allocations {
		switch {
		case key != a.Key:
			return fmt.Errorf("allocation %s has the key %s", key, a.Key)
		case a.Nodes < 1 || a.Walltime <= 0:
			return fmt.Errorf("allocation %s has %d nodes for %s", key, a.Nodes, a.Walltime)
		case a.State == Queued && a.OuterID == "":
			return fmt.Errorf("allocation %s is queued without an id", key)
		case (a.State == Ended) != !a.EndedAt.IsZero(), a.State == Ended && a.Outcome == "":
			return fmt.Errorf("allocation %s is %v, ended at %v, %q", key, a.State, a.EndedAt, a.Outcome)
		case a.Live > a.Joins, a.State == Ended && a.Live > 0:
			return fmt.Errorf("allocation %s: %d pilots live of %d", key, a.Live, a.Joins)
		}
	}
	for _, p := range v.Providers {
		if p.History.Refusals > maxRefusals && !p.History.Stopped {
			return fmt.Errorf("provider %s is not stopped after %d refusals", p.Name, p.History.Refusals)
		}
	}
	return nil
}
