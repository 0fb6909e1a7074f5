// Package share keeps the books of fair share: what each submitter uses now, what that has made of its priority, and whose turn is next.
//
// The formulae are HTCondor's (HTCondor manual, "User Priorities and Negotiation"; Accountant::UpdateOnePriority). The real priority of a
// submitter decays towards what it uses: after a time δ of using ρ it is
//
//	π' = β·π + (1−β)·ρ   with   β = 0.5^(δ/half-life)
//
// and what counts is max(0.5, π). The floor is applied when the priority is read and not at each step as HTCondor does it, so that the result
// does not depend on how often somebody looked. Times a factor it is the effective priority, smaller is better, and what two submitters may
// have is in inverse proportion to it. Nothing in here is ever negative.
//
// Usage is measured in the cores that a submitter's dominant share of the pool is worth: see [Weight].
package share

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// The constants of HTCondor: PRIORITY_HALFLIFE, the least real priority, and DEFAULT_PRIO_FACTOR.
const (
	HalfLife      = 24 * time.Hour
	LeastPriority = 0.5
	DefaultFactor = 1000
)

// Submitter is who is charged: an owner, on behalf of a group or none.
type Submitter struct{ Group, Owner string }

// String writes a submitter as HTCondor does, "group.owner".
func (s Submitter) String() string {
	if s.Group == "" {
		return s.Owner
	}
	return s.Group + "." + s.Owner
}

// Compare orders submitters by group, then by owner.
func (s Submitter) Compare(t Submitter) int {
	if c := strings.Compare(s.Group, t.Group); c != 0 {
		return c
	}
	return strings.Compare(s.Owner, t.Owner)
}

// Weight is what held is worth in cores, in a pool that has total: the dominant share of CPU, memory and GPUs (Ghodsi et al., "Dominant Resource
// Fairness"), times the cores of the pool. Whoever takes half of the pool's memory has the weight of half of its cores, however few it
// takes. What the pool has nothing of does not count; in a pool without cores the weight is the cores held.
func Weight(held, total roost.Resources) float64 {
	if total.CPU <= 0 {
		return max(0, held.CPU.Cores())
	}
	dominant := float64(held.CPU) / float64(total.CPU)
	if total.Memory > 0 {
		dominant = max(dominant, float64(held.Memory)/float64(total.Memory))
	}
	if total.GPUs > 0 {
		dominant = max(dominant, float64(held.GPUs)/float64(total.GPUs))
	}
	return max(0, dominant) * total.CPU.Cores()
}

// Book holds the account of every submitter.
type Book struct {
	halfLife time.Duration
	accounts map[Submitter]*account
}

// account is one submitter's. real and used are as of the instant at.
type account struct {
	real   float64 // π, without its floor; >= 0
	use    float64 // ρ, in cores; >= 0
	used   float64 // the integral of ρ, in core-seconds; never falls
	factor float64 // > 0
	at     time.Time
}

// NewBook returns an empty book with that half-life, HalfLife when it is not positive.
func NewBook(halfLife time.Duration) *Book {
	if halfLife <= 0 {
		halfLife = HalfLife
	}
	return &Book{halfLife: halfLife, accounts: map[Submitter]*account{}}
}

// advance brings the account to now. Time that runs backwards changes nothing.
func (b *Book) advance(a *account, now time.Time) {
	passed := now.Sub(a.at)
	if passed <= 0 {
		return
	}
	beta := math.Exp2(-float64(passed) / float64(b.halfLife))
	a.real = beta*a.real + (1-beta)*a.use
	a.used += a.use * passed.Seconds()
	a.at = now
}

func (b *Book) open(s Submitter, now time.Time) *account {
	a := b.accounts[s]
	if a == nil {
		a = &account{factor: DefaultFactor, at: now}
		b.accounts[s] = a
	}
	b.advance(a, now)
	return a
}

// Hold says that the submitter uses so many cores from now on. What is negative or no number counts as nothing.
func (b *Book) Hold(now time.Time, s Submitter, cores float64) {
	if !(cores > 0) || math.IsInf(cores, 1) {
		cores = 0
	}
	if cores == 0 && b.accounts[s] == nil {
		return
	}
	b.open(s, now).use = cores
}

// SetFactor sets the factor of a submitter; what is not positive and finite means DefaultFactor.
func (b *Book) SetFactor(now time.Time, s Submitter, factor float64) {
	if !(factor > 0) || math.IsInf(factor, 1) {
		factor = DefaultFactor
	}
	b.open(s, now).factor = factor
}

// Real is the submitter's real priority at now: LeastPriority or more.
func (b *Book) Real(now time.Time, s Submitter) float64 {
	a := b.accounts[s]
	if a == nil {
		return LeastPriority
	}
	b.advance(a, now)
	return max(LeastPriority, a.real)
}

// Effective is the real priority times the factor. Smaller is better.
func (b *Book) Effective(now time.Time, s Submitter) float64 {
	factor := float64(DefaultFactor)
	if a := b.accounts[s]; a != nil {
		factor = a.factor
	}
	return b.Real(now, s) * factor
}

// Used is what the submitter has used up to now, in core-seconds.
func (b *Book) Used(now time.Time, s Submitter) float64 {
	a := b.accounts[s]
	if a == nil {
		return 0
	}
	b.advance(a, now)
	return a.used
}

// Submitters lists everybody who has an account, in order.
func (b *Book) Submitters() []Submitter {
	all := make([]Submitter, 0, len(b.accounts))
	for s := range b.accounts {
		all = append(all, s)
	}
	slices.SortFunc(all, Submitter.Compare)
	return all
}

// check panics if an invariant is broken. Tests call it after each event.
func (b *Book) check() {
	for s, a := range b.accounts {
		if !(a.real >= 0) || !(a.use >= 0) || !(a.used >= 0) || !(a.factor > 0) {
			panic("account of " + s.String() + " is negative")
		}
	}
}
