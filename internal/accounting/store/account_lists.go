package store

import (
	"database/sql"

	"github.com/roost-batch/roost/internal/accounting"
)

const (
	selectAllAdjustments = `SELECT id, month, project, grp, owner, amount, reason, person, made FROM adjustment
WHERE month >= $1 AND month <= $2 ORDER BY id`
	selectBudgetPayers = `SELECT DISTINCT project, grp, owner FROM budget WHERE first <= $1 AND last >= $1
ORDER BY project, grp, owner`
	selectMonths = `SELECT m, coalesce(max(closed), 0), coalesce(max(closer), ''), CAST(coalesce(sum(amount), 0) AS bigint)
FROM (SELECT month AS m, closed, closer, 0 AS amount FROM month
 UNION ALL SELECT statement, 0, '', sum(amount) FROM charge_sum GROUP BY statement) AS months
GROUP BY m ORDER BY m DESC`
)

func (r reader) Rates() ([]accounting.Rate, error) { return r.store.Rates(r.ctx) }

func (r reader) Adjustments(first, last accounting.Month) ([]accounting.Adjustment, error) {
	var all []accounting.Adjustment
	err := queryAll(r.ctx, r.store.engine.reader(), func(rows *sql.Rows) error {
		var a accounting.Adjustment
		err := rows.Scan(&a.ID, &a.Month, &a.Payer.Project, &a.Payer.Group, &a.Payer.Owner, &a.Amount, &a.Reason, &a.By,
			&a.Set)
		all = append(all, a)
		return err
	}, selectAllAdjustments, int64(first), int64(last))
	return all, r.store.engine.explain(err)
}

func (r reader) Budgets(at accounting.Millis) ([]accounting.BudgetStatus, error) {
	var payers []accounting.Payer
	err := queryAll(r.ctx, r.store.engine.reader(), func(rows *sql.Rows) error {
		var p accounting.Payer
		err := rows.Scan(&p.Project, &p.Group, &p.Owner)
		payers = append(payers, p)
		return err
	}, selectBudgetPayers, int64(accounting.MonthOf(at)))
	if err != nil {
		return nil, r.store.engine.explain(err)
	}
	var all []accounting.BudgetStatus
	for _, p := range payers {
		b, err := r.Budget(p, at)
		if err != nil {
			return nil, err
		}
		if b.Amount != accounting.NoBudget {
			all = append(all, b)
		}
	}
	return all, nil
}

func (r reader) Months() ([]accounting.MonthStatus, error) {
	var all []accounting.MonthStatus
	err := queryAll(r.ctx, r.store.engine.reader(), func(rows *sql.Rows) error {
		var m accounting.MonthStatus
		err := rows.Scan(&m.Month, &m.Closed, &m.By, &m.Charges)
		all = append(all, m)
		return err
	}, selectMonths)
	return all, r.store.engine.explain(err)
}
