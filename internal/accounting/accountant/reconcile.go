package accountant

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// ledgerReconciler compares the accounts with the negotiator's ledger. The ledger counts
// what claims hold, by what schedds report to the leader. The accounts count attempts, by
// the feeds. Neither is made from the other, so that a loss on either way is found.
type ledgerReconciler struct {
	store  Store
	log    *slog.Logger
	every  time.Duration                                    // between two samples
	shares func(ctx context.Context) ([]ledgerShare, error) // asks the leader
	// running asks all schedds for their live attempts. With an error it returns those of
	// the schedds that answered.
	running  func(ctx context.Context) ([]accounting.RunningAttempt, error)
	listed   []accounting.RunningAttempt // what ran at listedAt
	listedAt accounting.Millis           // 0: nothing is listed
	last     time.Time                   // of the last sample; zero: not known
	ratio    atomic.Pointer[float64]     // of the last day; nil: nothing is compared yet
}

// ledgerShare is what the negotiators show of a submitter, as in roost shares.
type ledgerShare struct {
	User      string  `json:"user"`
	Group     string  `json:"group"`
	CoreHours float64 `json:"core_hours"`
	Elsewhere float64 `json:"core_hours_elsewhere"` // core-hours in other pools
}

// maxReconcileDelay bounds for how long a time has been over when it is compared. Entries
// of the feeds may be late.
const maxReconcileDelay = 10 * time.Minute

// run samples and compares until ctx ends. What fails is tried again the next time.
func (l *ledgerReconciler) run(ctx context.Context) {
	lastError := ""
	for ctx.Err() == nil {
		err := l.step(ctx, time.Now())
		text := ""
		if err != nil && ctx.Err() == nil {
			if text = err.Error(); text != lastError {
				l.log.Warn("the accounts cannot be compared with the ledger", "error", err)
			}
		}
		lastError = text
		sleep(ctx, min(max(l.every/8, 100*time.Millisecond), 30*time.Second))
	}
}

// step does what is due: a sample, and the comparisons of what has been over for long
// enough.
func (l *ledgerReconciler) step(ctx context.Context, now time.Time) error {
	if l.last.IsZero() {
		status, err := l.store.Reporter(ctx).LedgerStatus()
		if err != nil {
			return err
		}
		l.last = status.Last.Time()
	}
	if l.last.After(now) || now.Sub(l.last) >= l.every {
		if err := l.addSample(ctx, now); err != nil {
			return err
		}
		l.last = now
	}
	compared, err := l.compare(ctx, accounting.MillisOf(now))
	if err == nil && (compared || l.ratio.Load() == nil) {
		err = l.updateRatio(ctx, accounting.MillisOf(now))
	}
	return err
}

// compare compares what has been over for long enough. Attempts that run are in no feed:
// they are listed first, and those that end while the feeds are read up to then are in
// the list or in the store.
func (l *ledgerReconciler) compare(ctx context.Context, now accounting.Millis) (compared bool, err error) {
	status, err := l.store.Reporter(ctx).LedgerStatus()
	delay := accounting.Millis(min(l.every, maxReconcileDelay).Milliseconds())
	if err != nil || status.Next == 0 || status.Next+delay > now {
		return false, err
	}
	if l.listedAt == 0 {
		list, err := l.running(ctx)
		if err != nil && now-status.Next < maxScheddAway {
			return false, err
		}
		l.listed, l.listedAt = list, now
	}
	n, err := l.store.Reconcile(ctx, l.listedAt, l.listed, now)
	if n > 0 {
		l.listed, l.listedAt = nil, 0
	}
	return n > 0, err
}

// maxScheddAway is for how long a schedd that does not answer delays comparisons.
const maxScheddAway = 3 * accounting.DayMillis

// addSample stores what the ledger says now. The sample is as of the middle of the call.
func (l *ledgerReconciler) addSample(ctx context.Context, now time.Time) error {
	asked := time.Now()
	shares, err := l.shares(ctx)
	if err != nil {
		return err
	}
	sample := accounting.LedgerSample{At: accounting.MillisOf(now.Add(time.Since(asked) / 2))}
	for _, s := range shares {
		hours := s.CoreHours + s.Elsewhere
		if !(s.CoreHours >= 0) || !(s.Elsewhere >= 0) || math.IsInf(hours, 1) {
			return fmt.Errorf("ledger: %w: it says that %s used %v core-hours", roost.Invalid, s.User, hours)
		}
		if strings.HasPrefix(s.Group, peer.GuestGroup("")) {
			continue // the attempts of guests are in the accounts of their own pool
		}
		sample.Used = append(sample.Used, accounting.SubmitterUse{Used: int64(math.Round(hours * millisAnHour)),
			Submitter: accounting.Submitter{Owner: s.User, Group: s.Group}})
	}
	return l.store.AddLedgerSample(ctx, &sample)
}

const millisAnHour = float64(accounting.HourMillis)

// updateRatio computes how much of the last day's use differs.
func (l *ledgerReconciler) updateRatio(ctx context.Context, now accounting.Millis) error {
	r := l.store.Reporter(ctx)
	status, err := r.LedgerStatus()
	if err != nil || status.Compared == 0 {
		return err
	}
	list, err := r.Reconciliations(accounting.TimeRange{From: status.Compared - accounting.DayMillis, To: now})
	if err != nil {
		return err
	}
	sum := accounting.SumReconciliations(list)
	ratio := sum.Ratio()
	if was := l.ratio.Swap(&ratio); sum.Warns() && (was == nil || *was != ratio) {
		l.log.Warn("the accounts differ from the negotiator's ledger", "ratio", ratio,
			"ledger_core_hours", float64(sum.Ledger)/millisAnHour, "accounts_core_hours",
			float64(sum.Held)/millisAnHour, "see", "roost report reconcile --detail")
	}
	return nil
}

// ledgerShares asks the negotiators what each submitter has used.
func (a *accountant) ledgerShares(ctx context.Context) ([]ledgerShare, error) {
	var report struct {
		Submitters []ledgerShare `json:"submitters"`
	}
	if err := a.askCell(ctx, "shares", &report); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return report.Submitters, nil
}
