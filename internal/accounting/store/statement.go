package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// The payer of a charge is its project, or else its group, or else its owner. -1 is a
// name that nobody has.
const (
	selectStatement = `SELECT ran, owner, queue, band, cpu, amount FROM charge_sum
WHERE statement = $1 AND CASE WHEN project <> 0 THEN project = $2 WHEN grp <> 0 THEN grp = $3 ELSE owner = $4 END`
	selectPayers = `SELECT DISTINCT project, CASE WHEN project <> 0 THEN 0 ELSE grp END,
 CASE WHEN project <> 0 OR grp <> 0 THEN 0 ELSE owner END FROM charge_sum WHERE statement = $1`
	selectAdjustments = `SELECT id, month, amount, reason, person, made FROM adjustment
WHERE month >= $1 AND month <= $2 AND project = $3 AND grp = $4 AND owner = $5 ORDER BY id`
	selectAdjustedPayers = `SELECT DISTINCT project, grp, owner FROM adjustment WHERE month = $1`
	insertAdjustment     = `INSERT INTO adjustment (id, request, month, project, grp, owner, amount, reason, person, made)
VALUES ((SELECT coalesce(max(id), 0) + 1 FROM adjustment), $1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (request) DO NOTHING`
	selectSpent = `SELECT CAST(coalesce(sum(amount), 0) AS bigint) FROM charge_sum WHERE statement >= $1 AND statement <= $2
AND CASE WHEN project <> 0 THEN project = $3 WHEN grp <> 0 THEN grp = $4 ELSE owner = $5 END`
)

// payerIDs returns the ids of a payer's names: what is empty is -1.
func (s *Store) payerIDs(p accounting.Payer) (project, group, owner int64) {
	id := func(kind nameKind, text string) int64 {
		if text == "" {
			return -1
		}
		return s.names.find(kind, text)
	}
	return id(projectName, p.Project), id(groupName, p.Group), id(ownerName, p.Owner)
}

// Statement has a line for each owner, queue and band of what ran in the month. Charges
// for closed months are adjustments.
func (r reader) Statement(payer accounting.Payer, m accounting.Month) (accounting.Statement, error) {
	st := accounting.Statement{Payer: payer, Month: m}
	if _, err := payerNames(payer); err != nil {
		return st, err
	}
	db := r.store.engine.reader()
	var lastRate int64
	if err := db.QueryRowContext(r.ctx, selectClose, int64(m)).Scan(&st.Closed, &lastRate); err != nil {
		return st, r.store.engine.explain(err)
	}
	if err := r.addLines(&st); err != nil {
		return st, r.store.engine.explain(err)
	}
	adjustments, err := r.adjustments(payer, m, m)
	if err != nil {
		return st, r.store.engine.explain(err)
	}
	st.Adjustments = append(st.Adjustments, adjustments...)
	rates, err := readRates(r.ctx, db)
	if err != nil {
		return st, r.store.engine.explain(err)
	}
	if st.Closed != 0 { // what is set later changes nothing
		rates = slices.DeleteFunc(rates, func(rate accounting.Rate) bool { return rate.ID > lastRate })
	}
	var grant accounting.MicroUnits
	if rate := accounting.NewRateTable(rates).At(payer.Group, m.Start()); rate != nil {
		grant = rate.MonthlyGrant
	}
	st.Close(grant)
	return st, nil
}

// addLines adds the charges of the statement.
func (r reader) addLines(st *accounting.Statement) error {
	type lineKey struct{ owner, queue, band int64 }
	lines := map[lineKey]*accounting.StatementLine{}
	late := map[accounting.Month]accounting.MicroUnits{}
	project, group, owner := r.store.payerIDs(st.Payer)
	err := queryAll(r.ctx, r.store.engine.reader(), func(rows *sql.Rows) error {
		var k lineKey
		var ran accounting.Month
		var cpu int64
		var amount accounting.MicroUnits
		err := rows.Scan(&ran, &k.owner, &k.queue, &k.band, &cpu, &amount)
		if ran != st.Month {
			late[ran] += amount
			return err
		}
		l := entry(lines, k)
		l.Owner, l.Queue, l.Band = r.store.names.text(k.owner), r.store.names.text(k.queue), bandOf(k.band)
		l.CoreTime += cpu
		l.Amount += amount
		return err
	}, selectStatement, int64(st.Month), project, group, owner)
	st.Lines = sortedLines(lines, func(a, b *accounting.StatementLine) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Band, b.Band))
	})
	for m, amount := range late {
		if amount != 0 {
			st.Adjustments = append(st.Adjustments, accounting.Adjustment{
				Payer: st.Payer, Month: st.Month, Amount: amount,
				Reason: "news about " + m.String() + " after it was closed",
			})
		}
	}
	slices.SortFunc(st.Adjustments, func(a, b accounting.Adjustment) int { return cmp.Compare(a.Reason, b.Reason) })
	return err
}

// adjustments returns those that administrators made.
func (r reader) adjustments(p accounting.Payer, first, last accounting.Month) ([]accounting.Adjustment, error) {
	var all []accounting.Adjustment
	err := queryAll(r.ctx, r.store.engine.reader(), func(rows *sql.Rows) error {
		a := accounting.Adjustment{Payer: p}
		err := rows.Scan(&a.ID, &a.Month, &a.Amount, &a.Reason, &a.By, &a.Set)
		all = append(all, a)
		return err
	}, selectAdjustments, int64(first), int64(last), p.Project, p.Group, p.Owner)
	return all, err
}

func (r reader) Payers(m accounting.Month) ([]accounting.Payer, error) {
	found := map[accounting.Payer]*accounting.Payer{}
	err := queryAll(r.ctx, r.store.engine.reader(), func(rows *sql.Rows) error {
		var project, group, owner int64
		err := rows.Scan(&project, &group, &owner)
		text := r.store.names.text
		*entry(found, accounting.Payer{Project: text(project), Group: text(group), Owner: text(owner)}) =
			accounting.Payer{Project: text(project), Group: text(group), Owner: text(owner)}
		return err
	}, selectPayers, int64(m))
	if err == nil {
		err = queryAll(r.ctx, r.store.engine.reader(), func(rows *sql.Rows) error {
			var p accounting.Payer
			err := rows.Scan(&p.Project, &p.Group, &p.Owner)
			*entry(found, p) = p
			return err
		}, selectAdjustedPayers, int64(m))
	}
	return sortedLines(found, func(a, b *accounting.Payer) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Owner, b.Owner))
	}), r.store.engine.explain(err)
}

// Adjust adds an adjustment to an open month. request identifies it: the same request
// again adds nothing.
func (s *Store) Adjust(ctx context.Context, request string, a accounting.Adjustment) error {
	if _, err := payerNames(a.Payer); err != nil {
		return err
	}
	if request == "" || a.Reason == "" || a.By == "" {
		return fmt.Errorf("adjustment: %w: it needs a request id, a reason and who made it", roost.Invalid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	closed, err := s.closedMonths(ctx)
	if err != nil {
		return s.engine.explain(err)
	}
	if closed[a.Month] {
		return fmt.Errorf("adjustment of %s: %w: the month is closed; adjust an open one", a.Month, roost.Finished)
	}
	return s.inPermanentTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insertAdjustment, cleanText(request, maxNameBytes), int64(a.Month),
			cleanText(a.Payer.Project, maxNameBytes), cleanText(a.Payer.Group, maxNameBytes),
			cleanText(a.Payer.Owner, maxNameBytes), int64(a.Amount), cleanText(a.Reason, maxTextBytes),
			cleanText(a.By, maxNameBytes), int64(a.Set))
		return err
	})
}

const (
	insertBudget = `INSERT INTO budget (id, project, grp, owner, first, last, amount, hard, person, made)
VALUES ((SELECT coalesce(max(id), 0) + 1 FROM budget), $1, $2, $3, $4, $5, $6, $7, $8, $9)`
	selectBudget = `SELECT id, first, last, amount, hard, person, made FROM budget
WHERE project = $1 AND grp = $2 AND owner = $3 AND first <= $4 AND last >= $4 ORDER BY id DESC LIMIT 1`
)

// SetBudget adds a budget. Of the budgets of a payer for a month, the last that was set
// counts.
func (s *Store) SetBudget(ctx context.Context, b accounting.Budget) error {
	names, err := payerNames(b.Payer)
	if err != nil {
		return err
	}
	if b.From <= 0 || b.To < b.From || b.Amount < 0 || b.By == "" {
		return fmt.Errorf("budget: %w: it needs a first and a last month, an amount and who set it", roost.Invalid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inPermanentTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insertBudget, append(names, int64(b.From), int64(b.To), int64(b.Amount),
			boolNumber(b.Hard),
			cleanText(b.By, maxNameBytes), int64(b.Set))...)
		return err
	})
}

// Budget counts the charges and the adjustments of the months of the budget.
func (r reader) Budget(payer accounting.Payer, at accounting.Millis) (accounting.BudgetStatus, error) {
	st := accounting.BudgetStatus{Budget: accounting.Budget{Payer: payer}}
	names, err := payerNames(payer)
	if err != nil {
		return st, err
	}
	db := r.store.engine.reader()
	err = db.QueryRowContext(r.ctx, selectBudget, append(names, int64(accounting.MonthOf(at)))...).Scan(&st.ID,
		&st.From,
		&st.To, &st.Amount, &st.Hard, &st.By, &st.Set)
	if errors.Is(err, sql.ErrNoRows) {
		return st, fmt.Errorf("budget of %s: %w", accounting.MonthOf(at), roost.NotFound)
	}
	if err != nil {
		return st, r.store.engine.explain(err)
	}
	project, group, owner := r.store.payerIDs(payer)
	err = db.QueryRowContext(r.ctx, selectSpent, int64(st.From), int64(st.To), project, group, owner).Scan(&st.Spent)
	if err != nil {
		return st, r.store.engine.explain(err)
	}
	adjustments, err := r.adjustments(payer, st.From, st.To)
	for _, a := range adjustments {
		st.Spent += a.Amount
	}
	return st, r.store.engine.explain(err)
}
