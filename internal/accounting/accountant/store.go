package accountant

import (
	"context"

	"github.com/roost-batch/roost/internal/accounting"
)

// Store is what the accountant needs of package store.
type Store interface {
	// NextNumber returns the number of the entry of a source's feed that comes next.
	NextNumber(source accounting.SourceID) uint64
	// Ingest stores entries and the number after them in one transaction. Entries that
	// come again change nothing.
	Ingest(ctx context.Context, source accounting.SourceID, host string, entries []accounting.FeedEntry) error
	// Restore stores entries that were made from jobs, for the gap before number next.
	Restore(ctx context.Context, source accounting.SourceID, host string, next uint64,
		entries []accounting.FeedEntry) error
	// SkipTo notes that a gap before number next is filled.
	SkipTo(ctx context.Context, source accounting.SourceID, host string, next uint64) error
	// Advance notes that a feed is complete up to a time of its schedd's clock.
	Advance(ctx context.Context, source accounting.SourceID, host string, until accounting.Millis) error
	IngestMachines(ctx context.Context, events []accounting.MachineEvent) error
	// DirtyHours counts the hours that are not summed up, and Size the bytes on disk.
	DirtyHours(ctx context.Context) (int, error)
	Size(ctx context.Context) (int64, error)
	Reader(ctx context.Context) accounting.Reader
	Reporter(ctx context.Context) accounting.Reporter

	// Roll sums up at most limit hours, and Charge charges at most limit attempts; both
	// return how many there were. CloseMonths closes the months that are complete.
	Roll(ctx context.Context, now accounting.Millis, limit int) (int, error)
	Charge(ctx context.Context, now accounting.Millis, limit int) (int, error)
	CloseMonths(ctx context.Context, now accounting.Millis) ([]accounting.Month, error)

	// AddLedgerSample stores what the negotiator's ledger says. Reconcile compares the
	// accounts with it up to a time at which some attempts ran, when all feeds are
	// complete up to then. It returns how many times between samples it compared.
	AddLedgerSample(ctx context.Context, sample *accounting.LedgerSample) error
	Reconcile(ctx context.Context, at accounting.Millis, running []accounting.RunningAttempt, now accounting.Millis) (
		int, error)

	// Verify returns an error that names each row that is damaged of those that no schedd
	// has: rates, adjustments, budgets and closed months.
	Verify(ctx context.Context) error
	// Purge removes windows of usage and actions on jobs from before two times.
	Purge(ctx context.Context, usageBefore, actionsBefore accounting.Millis) error

	// AddRate adds a rate, and Rerate has all charged again that ended since then. A
	// request that adjusts again adjusts nothing.
	AddRate(ctx context.Context, r accounting.Rate) error
	Rerate(ctx context.Context, from accounting.Millis) error
	Adjust(ctx context.Context, request string, a accounting.Adjustment) error
	SetBudget(ctx context.Context, b accounting.Budget) error
	CloseMonth(ctx context.Context, m accounting.Month, by string, now accounting.Millis) error
	Close() error
}
