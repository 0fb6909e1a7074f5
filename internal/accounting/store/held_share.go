package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// heldShares sums what attempts held in the unit of the negotiator's ledger. That is not
// a sum over attempts: the dominant share is one of all that a submitter holds at a time.
type heldShares struct {
	hours   accounting.TimeRange
	pool    []resourceChange
	changes map[accounting.Submitter][]resourceChange
	stored  map[attemptKey]bool // those of the running attempts that the store has
}

// runningSet is the attempts that ran at some time, by their keys in the store. One whose
// end has come since is in the store, and counts as it is there.
type runningSet map[attemptKey]*accounting.RunningAttempt

// newRunningSet returns the set. What a source has that the store does not know is in no
// feed, and is left out.
func (s *Store) newRunningSet(list []accounting.RunningAttempt) runningSet {
	set := runningSet{}
	for i := range list {
		a := &list[i]
		source, known := s.sources.find(a.Attempt.Source)
		if !known {
			continue
		}
		set[attemptKey{jobKey{a.Attempt.Month, source.id, int64(a.Attempt.Seq)}, int64(a.Attempt.Index),
			int64(a.Attempt.Attempt)}] = a
	}
	return set
}

// resourceChange is by how much resources grow at an instant.
type resourceChange struct {
	at   accounting.Millis
	more roost.Resources
}

func (c resourceChange) compare(d resourceChange) int { return cmp.Compare(c.at, d.at) }

// add adds an attempt.
func (h *heldShares) add(who accounting.Submitter, a *accounting.AttemptEntry, now accounting.Millis) {
	for _, span := range a.HeldSpans(now) {
		from, to := max(span.From, h.hours.From), min(span.To, h.hours.To)
		if from < to {
			h.changes[who] = append(h.changes[who], resourceChange{from, span.Held},
				resourceChange{to, roost.Resources{}.Sub(span.Held)})
		}
	}
}

// addTo adds to sums what each submitter's resources were worth over the range, in
// core-milliseconds.
func (h *heldShares) addTo(sums map[accounting.Submitter]float64) {
	slices.SortStableFunc(h.pool, resourceChange.compare)
	for who, changes := range h.changes {
		slices.SortFunc(changes, resourceChange.compare)
		var held, total roost.Resources
		at, pool := h.hours.From, h.pool
		for len(changes) > 0 {
			next := changes[0].at
			if len(pool) > 0 {
				next = min(next, pool[0].at)
			}
			sums[who] += fairshare.CoresWorth(held, total) * float64(next-at)
			at = next
			for ; len(changes) > 0 && changes[0].at == at; changes = changes[1:] {
				held = held.Add(changes[0].more)
			}
			for ; len(pool) > 0 && pool[0].at == at; pool = pool[1:] {
				total = total.Add(pool[0].more)
			}
		}
	}
}

const (
	// sumChunk is how much time is summed at once, which bounds memory.
	sumChunk = accounting.HourMillis
	// maxAssigned is for how long an attempt is looked for that was assigned and has not
	// started.
	maxAssigned = 6 * accounting.HourMillis
)

// sumHeldShares returns what each submitter's attempts held in a range, in the unit of
// the ledger.
func (s ledgerComparer) sumHeldShares(ctx context.Context, r accounting.TimeRange) (map[accounting.Submitter]float64,
	error) {
	sums := map[accounting.Submitter]float64{}
	for from := r.From; from < r.To; from += sumChunk {
		h := heldShares{hours: accounting.TimeRange{From: from, To: min(from+sumChunk, r.To)},
			changes: map[accounting.Submitter][]resourceChange{}, stored: map[attemptKey]bool{}}
		if err := s.addPool(ctx, &h); err != nil {
			return nil, err
		}
		if err := s.addHeldAttempts(ctx, &h); err != nil {
			return nil, err
		}
		for key, a := range s.running {
			if !h.stored[key] {
				h.add(a.Submitter, &a.Attempt, s.now)
			}
		}
		h.addTo(sums)
	}
	return sums, nil
}

// addPool adds what the machines of the pool had in the range.
func (s ledgerComparer) addPool(ctx context.Context, h *heldShares) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	states, err := s.machinesAt(ctx, s.engine.reader(), h.hours.From)
	if err != nil {
		return err
	}
	capacity := func(node int64) (total roost.Resources) {
		if state := states[node]; state.Present {
			total = state.Capacity
		}
		return total
	}
	for node := range states {
		h.pool = append(h.pool, resourceChange{h.hours.From, capacity(node)})
	}
	return queryAll(ctx, s.engine.reader(), func(rows *sql.Rows) error {
		r, err := s.scanMachine(rows)
		if err != nil {
			return err
		}
		before, state := capacity(r.node), states[r.node]
		state.Apply(&r.MachineEvent)
		states[r.node] = state
		h.pool = append(h.pool, resourceChange{r.Time, capacity(r.node).Sub(before)})
		return nil
	}, selectMachines, int64(h.hours.From), int64(h.hours.To))
}

const selectHeld = `SELECT a.month, a.source, a.seq, a.idx, a.attempt, a.assigned, a.started, a.ended, a.cpu, a.mem, a.gpus, a.wall, a.segments, a.owner,
 coalesce(j.grp, 0), coalesce(j.ended, 0)
FROM attempt a LEFT JOIN job j ON j.month = a.month AND j.source = a.source AND j.seq = a.seq
WHERE a.span = $1 AND a.begins >= $2 AND a.begins < $3`

// addHeldAttempts adds all attempts that held something in the range.
func (s ledgerComparer) addHeldAttempts(ctx context.Context, h *heldShares) error {
	until := h.hours.To + maxAssigned
	parts, err := s.engine.partitions(ctx, 0, accounting.MonthOf(until))
	if err != nil {
		return err
	}
	for _, p := range parts {
		for class := int64(-1); class <= longestSpan; class++ {
			from := accounting.Millis(0)
			if class >= 0 {
				from = max(from, h.hours.From-spanMillis(class))
			}
			err := queryAll(ctx, p.db, func(rows *sql.Rows) error {
				key, err := s.addHeldRow(rows, h)
				if s.running[key] != nil {
					h.stored[key] = true
				}
				return err
			}, selectHeld, class, int64(from), int64(until))
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// addHeldRow adds a row of selectHeld. An attempt of a job that has ended does not run,
// even if news of its end was lost.
func (s ledgerComparer) addHeldRow(rows *sql.Rows, h *heldShares) (k attemptKey, err error) {
	var a accounting.AttemptEntry
	var owner, group int64
	var segments []byte
	var jobEnded accounting.Millis
	err = rows.Scan(&k.month, &k.source, &k.seq, &k.index, &k.attempt, &a.Assigned, &a.Started, &a.Ended, &a.Held.CPU,
		&a.Held.Memory, &a.Held.GPUs, &a.Wall, &segments, &owner, &group, &jobEnded)
	if err != nil {
		return k, err
	}
	if a.Segments, err = unpackSegments(segments); err != nil {
		return k, err
	}
	now := s.now
	if a.Ended == 0 && jobEnded != 0 {
		now = min(now, max(jobEnded, a.Started))
	}
	h.add(accounting.Submitter{Owner: s.names.text(owner), Group: s.names.text(group)}, &a, now)
	return k, nil
}
