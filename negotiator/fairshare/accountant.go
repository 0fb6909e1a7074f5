// Package share keeps the books of fair share: what each submitter uses now, what that
// has made of its priority, and whose turn is next.
//
// The formulae are HTCondor's (HTCondor manual, "User Priorities and Negotiation";
// Accountant::UpdateOnePriority). The real priority of a submitter decays towards what it
// uses: after a time δ of using ρ it is
//
//	π' = β·π + (1−β)·ρ   with   β = 0.5^(δ/half-life)
//
// and what counts is max(0.5, π). The floor is applied when the priority is read and not
// at each step as HTCondor does it, so that the result does not depend on how often
// somebody looked. Times a factor it is the effective priority, smaller is better, and
// what two submitters may have is in inverse proportion to it. Nothing in here is ever
// negative.
//
// Usage is measured in the cores that a submitter's dominant share of the pool is worth:
// see [CoresWorth].
//
// # Bit for bit
//
// Every replica of the negotiator keeps a book, and after the same events all of them
// must be the same, on whatever processors they run. Rounding leaves room for two
// differences. A compiler may fuse x*y + z into one operation with one rounding, and on
// some processors Go's does: an explicit conversion to float64 forbids it (Go
// specification, "Floating-point operators"), so each product in here that is added to
// something stands in one. And math.Exp2 is written in assembly on some processors: so
// 2^-x is made here, of operations that IEEE 754 defines to the last bit ([halved]).
// Reading an account changes nothing, as a leader is asked more often than those who
// follow it.
package fairshare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// The constants of HTCondor: PRIORITY_HALFLIFE, the least real priority, and
// DEFAULT_PRIO_FACTOR.
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

// CoresWorth is what held is worth in cores, in a pool that has total: the dominant share
// of CPU, memory and GPUs (Ghodsi et al., "Dominant Resource Fairness"), times the cores
// of the pool. Whoever takes half of the pool's memory has the weight of half of its
// cores, however few it takes. What the pool has nothing of does not count; in a pool
// without cores the weight is the cores held.
func CoresWorth(held, total roost.Resources) float64 {
	weight, cores := held.CPU.Cores(), total.CPU.Cores()
	if total.Memory > 0 && cores > 0 {
		weight = max(weight, float64(held.Memory)*cores/float64(total.Memory))
	}
	if total.GPUs > 0 && cores > 0 {
		weight = max(weight, float64(held.GPUs)*cores/float64(total.GPUs))
	}
	return max(0, weight)
}

// Accountant holds the account of every submitter.
type Accountant struct {
	halfLife time.Duration
	accounts map[Submitter]*SubmitterAccount
}

// SubmitterAccount is one submitter's, to be kept and read back. Real and Used are as of
// the instant At.
type SubmitterAccount struct {
	Submitter Submitter
	Real      float64 // π, without its floor; >= 0
	Use       float64 // ρ, in cores; >= 0
	Used      float64 // the integral of ρ, in core-seconds; never falls but in ResetUsage
	Factor    float64 // > 0
	At        int64   // unix nanoseconds
}

// NewAccountant returns an empty book with that half-life, HalfLife when it is not
// positive.
func NewAccountant(halfLife time.Duration) *Accountant {
	if halfLife <= 0 {
		halfLife = HalfLife
	}
	return &Accountant{halfLife: halfLife, accounts: map[Submitter]*SubmitterAccount{}}
}

// accountAt is the account as it stands at now. Time that runs backwards changes nothing.
func (b *Accountant) accountAt(a SubmitterAccount, now time.Time) SubmitterAccount {
	at := now.UnixNano()
	passed := at - a.At
	if passed <= 0 {
		return a
	}
	beta := exp2Neg(passed, int64(b.halfLife))
	a.Real = float64(beta*a.Real) + float64((1-beta)*a.Use)
	a.Used += float64(a.Use * (float64(passed) / 1e9))
	a.At = at
	return a
}

// exp2Neg is 2^-(passed/halfLife), to about one part in 10^15. Whole half-lives are
// counted in integers; for the rest f the series of e^-y with y = f·ln 2 is summed from
// its end, 1 - y/1·(1 - y/2·(1 - …)), where the term that is left out is below 1e-20.
func exp2Neg(passed, halfLife int64) float64 {
	y := float64(float64(passed%halfLife)/float64(halfLife)) * math.Ln2
	sum := 1.0
	for k := 18.0; k >= 1; k-- {
		sum = 1 - float64(float64(y*sum)/k)
	}
	return math.Ldexp(sum, -int(min(passed/halfLife, 2000)))
}

// openAccount returns the submitter's account, brought to now, and makes one if there is
// none.
func (b *Accountant) openAccount(s Submitter, now time.Time) *SubmitterAccount {
	a := b.accounts[s]
	if a == nil {
		a = &SubmitterAccount{Submitter: s, Factor: DefaultFactor, At: now.UnixNano()}
		b.accounts[s] = a
	}
	*a = b.accountAt(*a, now)
	return a
}

// SetHalfLife changes how fast priorities follow use from now on; what is not positive
// means HalfLife.
func (b *Accountant) SetHalfLife(now time.Time, halfLife time.Duration) {
	if halfLife <= 0 {
		halfLife = HalfLife
	}
	for _, a := range b.accounts {
		*a = b.accountAt(*a, now)
	}
	b.halfLife = halfLife
}

// HalfLife is how long it takes a priority to halve when nothing is used.
func (b *Accountant) HalfLife() time.Duration { return b.halfLife }

// SetUsage says that the submitter uses so many cores from now on. What is negative or no
// number counts as nothing.
func (b *Accountant) SetUsage(now time.Time, s Submitter, cores float64) {
	if !(cores > 0) || math.IsInf(cores, 1) {
		cores = 0
	}
	if cores == 0 && b.accounts[s] == nil {
		return
	}
	b.openAccount(s, now).Use = cores
}

// SetFactor sets the factor of a submitter; what is not positive and finite means
// DefaultFactor.
func (b *Accountant) SetFactor(now time.Time, s Submitter, factor float64) {
	if !(factor > 0) || math.IsInf(factor, 1) {
		factor = DefaultFactor
	}
	b.openAccount(s, now).Factor = factor
}

// ResetUsage forgets what a submitter has used, so that it stands as a newcomer that uses
// what it uses now. Its factor stays.
func (b *Accountant) ResetUsage(now time.Time, s Submitter) {
	if b.accounts[s] != nil {
		a := b.openAccount(s, now)
		a.Real, a.Used = 0, 0
	}
}

// RewindClock says that the clock was wrong and has been put back to now: accounts that
// had been brought to a later time go on from now.
func (b *Accountant) RewindClock(now time.Time) {
	for _, a := range b.accounts {
		a.At = min(a.At, now.UnixNano())
	}
}

// HasAccount reports whether a submitter has an account: it used something once, or has a
// factor of its own.
func (b *Accountant) HasAccount(s Submitter) bool { return b.accounts[s] != nil }

// Account is the submitter's account as it stands at now; one who has none gets one that
// is empty.
func (b *Accountant) Account(now time.Time, s Submitter) SubmitterAccount {
	if a := b.accounts[s]; a != nil {
		return b.accountAt(*a, now)
	}
	return SubmitterAccount{Submitter: s, Factor: DefaultFactor, At: now.UnixNano()}
}

// RealPriority is the submitter's real priority at now: LeastPriority or more.
func (b *Accountant) RealPriority(now time.Time, s Submitter) float64 {
	return max(LeastPriority, b.Account(now, s).Real)
}

// EffectivePriority is the real priority times the factor. Smaller is better.
func (b *Accountant) EffectivePriority(now time.Time, s Submitter) float64 {
	a := b.Account(now, s)
	return max(LeastPriority, a.Real) * a.Factor
}

// CoreSeconds is what the submitter has used up to now, in core-seconds.
func (b *Accountant) CoreSeconds(now time.Time, s Submitter) float64 { return b.Account(now, s).Used }

// Submitters lists everybody who has an account, in order.
func (b *Accountant) Submitters() []Submitter {
	all := make([]Submitter, 0, len(b.accounts))
	for s := range b.accounts {
		all = append(all, s)
	}
	slices.SortFunc(all, Submitter.Compare)
	return all
}

// mustBeValid panics if an invariant is broken. Tests call it after each event.
func (b *Accountant) mustBeValid() {
	if err := b.CheckInvariants(); err != nil {
		panic(err)
	}
}

// CheckInvariants returns an error if an invariant of the book is broken.
func (b *Accountant) CheckInvariants() error {
	for _, s := range b.Submitters() {
		if a := b.accounts[s]; a.Submitter != s || !a.isValid() {
			return fmt.Errorf("account of %s: %w: %+v", s, roost.Internal, *a)
		}
	}
	return nil
}

func (a *SubmitterAccount) isValid() bool {
	for _, v := range []float64{a.Real, a.Use, a.Used, a.Factor} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return false
		}
	}
	return a.Factor > 0
}
