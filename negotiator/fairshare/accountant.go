// Package fairshare computes fair share: the usage of each submitter, the resulting
// priorities, and who is next.
//
// The formulae are HTCondor's (HTCondor manual, "User Priorities and Negotiation";
// Accountant::UpdateOnePriority). The real priority of a submitter decays towards its
// usage: after a time δ of using ρ it is
//
//	π' = β·π + (1−β)·ρ   with   β = 0.5^(δ/half-life)
//
// and what counts is max(0.5, π). This minimum is applied when the priority is read, and
// not at each step as in HTCondor, so that the result does not depend on how often it is
// read. The effective priority is that times a factor; smaller is better, and the shares
// of two submitters are inversely proportional to it. No number here is ever negative.
//
// Usage is measured in the cores that a submitter's dominant share of the pool is worth:
// see [CoresWorth].
//
// Usage in other pools is counted beside that of this pool. In ρ it counts with a weight,
// which is 0 unless an administrator sets one, as in HTCondor.
//
// # Bit for bit
//
// Every replica of the negotiator has an accountant, and after the same events all of
// them must be equal, on all processors. Rounding permits two differences. A compiler may
// fuse x*y + z into one operation with one rounding, and Go's does so on some processors.
// An explicit conversion to float64 forbids it (Go specification, "Floating-point
// operators"), so each product that is added to something is converted. And math.Exp2 is
// written in assembly on some processors, so 2^-x is computed here, with operations that
// IEEE 754 defines to the last bit ([exp2Neg]). Reading an account changes nothing,
// because a leader is read more often than a follower.
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

// Submitter is the account that usage is charged to: an owner, on behalf of a group or
// none.
type Submitter struct{ Group, Owner string }

// String returns a submitter in HTCondor's form, "group.owner".
func (s Submitter) String() string {
	if s.Group == "" {
		return s.Owner
	}
	return s.Group + "." + s.Owner
}

// GuestGroupPrefix begins the groups of guests, which are users of another pool. All of
// the pool that is called "physics" here are in "peer:physics".
const GuestGroupPrefix = "peer:"

// IsGuest reports whether a submitter is a user of another pool.
func (s Submitter) IsGuest() bool { return strings.HasPrefix(s.Group, GuestGroupPrefix) }

// Compare orders submitters by group, then by owner.
func (s Submitter) Compare(t Submitter) int {
	if c := strings.Compare(s.Group, t.Group); c != 0 {
		return c
	}
	return strings.Compare(s.Owner, t.Owner)
}

// CoresWorth returns what held is worth in cores, in a pool of total. It is the dominant
// share of CPU, memory and GPUs (Ghodsi et al., "Dominant Resource Fairness"), times the
// cores of the pool. A submitter with half of the pool's memory has the weight of half of
// its cores, however few it uses. Resources that the pool does not have do not count; in
// a pool without cores the weight is the cores held.
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
	halfLife        time.Duration
	elsewhereWeight float64 // what a core in another pool counts beside one in this pool; >= 0
	accounts        map[Submitter]*SubmitterAccount
}

// SubmitterAccount is the account of one submitter, for saving and loading. Real and Used
// are as of the instant At.
type SubmitterAccount struct {
	Submitter Submitter
	Real      float64 // π, without its minimum; >= 0
	Use       float64 // ρ, in cores; >= 0
	Used      float64 // integral of ρ, in core-seconds; falls only in ResetUsage
	Factor    float64 // > 0
	At        int64   // unix nanoseconds

	// What tasks of this pool use in other pools is counted by itself.
	UseElsewhere  float64 // in cores; >= 0
	UsedElsewhere float64 // its integral, in core-seconds; falls only in ResetUsage
}

// NewAccountant returns an accountant without accounts. halfLife is HalfLife if it is not
// positive.
func NewAccountant(halfLife time.Duration) *Accountant {
	if halfLife <= 0 {
		halfLife = HalfLife
	}
	return &Accountant{halfLife: halfLife, accounts: map[Submitter]*SubmitterAccount{}}
}

// accountAt returns the account as of now. Time that runs backwards changes nothing.
func (b *Accountant) accountAt(a SubmitterAccount, now time.Time) SubmitterAccount {
	at := now.UnixNano()
	passed := at - a.At
	if passed <= 0 {
		return a
	}
	beta := exp2Neg(passed, int64(b.halfLife))
	counted := a.Use + float64(b.elsewhereWeight*a.UseElsewhere)
	a.Real = float64(beta*a.Real) + float64((1-beta)*counted)
	a.Used += float64(a.Use * (float64(passed) / 1e9))
	a.UsedElsewhere += float64(a.UseElsewhere * (float64(passed) / 1e9))
	a.At = at
	return a
}

// exp2Neg returns 2^-(passed/halfLife), to about one part in 10^15. Whole half-lives are
// counted in integers. For the rest f it sums the series of e^-y with y = f·ln 2 from its
// end, 1 - y/1·(1 - y/2·(1 - …)); the omitted term is below 1e-20.
func exp2Neg(passed, halfLife int64) float64 {
	y := float64(float64(passed%halfLife)/float64(halfLife)) * math.Ln2
	sum := 1.0
	for k := 18.0; k >= 1; k-- {
		sum = 1 - float64(float64(y*sum)/k)
	}
	return math.Ldexp(sum, -int(min(passed/halfLife, 2000)))
}

// openAccount returns the submitter's account as of now, and creates it if there is none.
func (b *Accountant) openAccount(s Submitter, now time.Time) *SubmitterAccount {
	a := b.accounts[s]
	if a == nil {
		a = &SubmitterAccount{Submitter: s, Factor: DefaultFactor, At: now.UnixNano()}
		b.accounts[s] = a
	}
	*a = b.accountAt(*a, now)
	return a
}

// SetHalfLife changes how fast priorities follow usage from now on. A value that is not
// positive means HalfLife.
func (b *Accountant) SetHalfLife(now time.Time, halfLife time.Duration) {
	if halfLife <= 0 {
		halfLife = HalfLife
	}
	for _, a := range b.accounts {
		*a = b.accountAt(*a, now)
	}
	b.halfLife = halfLife
}

// HalfLife returns the time in which a priority halves without usage.
func (b *Accountant) HalfLife() time.Duration { return b.halfLife }

// SetUsage sets how many cores the submitter uses from now on. Negative and invalid
// numbers count as 0.
func (b *Accountant) SetUsage(now time.Time, s Submitter, cores float64) {
	if !(cores > 0) || math.IsInf(cores, 1) {
		cores = 0
	}
	if cores == 0 && b.accounts[s] == nil {
		return
	}
	b.openAccount(s, now).Use = cores
}

// SetUsageElsewhere sets how many cores the submitter uses in other pools from now on.
// Negative and invalid numbers count as 0.
func (b *Accountant) SetUsageElsewhere(now time.Time, s Submitter, cores float64) {
	if !(cores > 0) || math.IsInf(cores, 1) {
		cores = 0
	}
	if a := b.accounts[s]; a == nil && cores == 0 || a != nil && a.UseElsewhere == cores {
		return
	}
	b.openAccount(s, now).UseElsewhere = cores
}

// SetElsewhereWeight changes how much a core in another pool counts for the priority from
// now on. A value that is negative or not finite means 0.
func (b *Accountant) SetElsewhereWeight(now time.Time, weight float64) {
	if !(weight >= 0) || math.IsInf(weight, 1) {
		weight = 0
	}
	for _, a := range b.accounts {
		*a = b.accountAt(*a, now)
	}
	b.elsewhereWeight = weight
}

// ElsewhereWeight returns how much a core in another pool counts for the priority.
func (b *Accountant) ElsewhereWeight() float64 { return b.elsewhereWeight }

// SetFactor sets the factor of a submitter. A value that is not positive and finite means
// DefaultFactor.
func (b *Accountant) SetFactor(now time.Time, s Submitter, factor float64) {
	if !(factor > 0) || math.IsInf(factor, 1) {
		factor = DefaultFactor
	}
	b.openAccount(s, now).Factor = factor
}

// ResetUsage drops what a submitter has used, so that it is like a new one with its
// present usage. Its factor remains.
func (b *Accountant) ResetUsage(now time.Time, s Submitter) {
	if b.accounts[s] != nil {
		a := b.openAccount(s, now)
		a.Real, a.Used, a.UsedElsewhere = 0, 0, 0
	}
}

// RewindClock handles a clock that was wrong and has been set back to now. Accounts as of
// a later time continue from now.
func (b *Accountant) RewindClock(now time.Time) {
	for _, a := range b.accounts {
		a.At = min(a.At, now.UnixNano())
	}
}

// HasAccount reports whether a submitter has an account: it has used something, or has a
// factor of its own.
func (b *Accountant) HasAccount(s Submitter) bool { return b.accounts[s] != nil }

// Account returns the submitter's account as of now, or an empty one.
func (b *Accountant) Account(now time.Time, s Submitter) SubmitterAccount {
	if a := b.accounts[s]; a != nil {
		return b.accountAt(*a, now)
	}
	return SubmitterAccount{Submitter: s, Factor: DefaultFactor, At: now.UnixNano()}
}

// RealPriority returns the submitter's real priority at now: LeastPriority or more.
func (b *Accountant) RealPriority(now time.Time, s Submitter) float64 {
	return max(LeastPriority, b.Account(now, s).Real)
}

// EffectivePriority returns the real priority times the factor. Smaller is better.
func (b *Accountant) EffectivePriority(now time.Time, s Submitter) float64 {
	a := b.Account(now, s)
	return max(LeastPriority, a.Real) * a.Factor
}

// CoreSeconds returns what the submitter has used up to now, in core-seconds.
func (b *Accountant) CoreSeconds(now time.Time, s Submitter) float64 { return b.Account(now, s).Used }

// Submitters lists all submitters with an account, in order.
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

// CheckInvariants returns an error if an invariant is broken.
func (b *Accountant) CheckInvariants() error {
	for _, s := range b.Submitters() {
		if a := b.accounts[s]; a.Submitter != s || !a.isValid() {
			return fmt.Errorf("account of %s: %w: %+v", s, roost.Internal, *a)
		}
	}
	return nil
}

func (a *SubmitterAccount) isValid() bool {
	for _, v := range []float64{a.Real, a.Use, a.Used, a.Factor, a.UseElsewhere, a.UsedElsewhere} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return false
		}
	}
	return a.Factor > 0
}
