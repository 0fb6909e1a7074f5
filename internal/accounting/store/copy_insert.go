package store

// The statements that insert a whole row into each table of SQLite files, with the values
// in the order of its columns.
const (
	rowOfSource  = `INSERT INTO source VALUES (?, ?, ?, ?, ?, ?)`
	rowOfGap     = `INSERT INTO gap VALUES (?, ?, ?, ?)`
	rowOfName    = `INSERT INTO name VALUES (?, ?, ?)`
	rowOfMonth   = `INSERT INTO month VALUES (?, ?, ?, ?)`
	rowOfCounter = `INSERT INTO counter VALUES (?, ?)`
	rowOfDirty   = `INSERT INTO dirty VALUES (?, ?)`
	rowOfDue     = `INSERT INTO due VALUES (?, ?, ?, ?, ?, ?)`
	rowOfMachine = `INSERT INTO machine VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfRollup  = `INSERT INTO rollup VALUES
 (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfRollupEnd        = `INSERT INTO rollup_end VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfRollupWait       = `INSERT INTO rollup_wait VALUES (?, ?, ?, ?, ?, ?, ?)`
	rowOfRollupSize       = `INSERT INTO rollup_size VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfRollupCapacity   = `INSERT INTO rollup_capacity VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfRate             = `INSERT INTO rate VALUES (?, ?, ?, ?)`
	rowOfCharge           = `INSERT INTO charge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfChargeSum        = `INSERT INTO charge_sum VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfAdjustment       = `INSERT INTO adjustment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfBudget           = `INSERT INTO budget VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfReconciliation   = `INSERT INTO reconciliation VALUES (?, ?, ?, ?, ?)`
	rowOfRowDigest        = `INSERT INTO row_digest VALUES (?, ?, ?)`
	rowOfSummedMonth      = `INSERT INTO summed_month VALUES (?)`
	rowOfLedgerSample     = `INSERT INTO ledger_sample VALUES (?)`
	rowOfLedgerUse        = `INSERT INTO ledger_use VALUES (?, ?, ?, ?)`
	rowOfLedgerComparison = `INSERT INTO ledger_comparison VALUES (?, ?, ?, ?, ?, ?, ?)`
	rowOfMachineClass     = `INSERT INTO machine_class VALUES (?, ?, ?)`
	rowOfJob              = `INSERT INTO job VALUES
 (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
 ?)`
	rowOfAttempt = `INSERT INTO attempt VALUES
 (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
 ?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfAction = `INSERT INTO action VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rowOfUsage  = `INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
)

// rowInserts are these statements, by table.
func rowInserts() map[string]string {
	return map[string]string{
		"source": rowOfSource, "gap": rowOfGap, "name": rowOfName, "month": rowOfMonth,
		"counter": rowOfCounter, "dirty": rowOfDirty, "due": rowOfDue, "machine": rowOfMachine,
		"rollup": rowOfRollup, "rollup_end": rowOfRollupEnd, "rollup_wait": rowOfRollupWait,
		"rollup_size": rowOfRollupSize, "rollup_capacity": rowOfRollupCapacity, "rate": rowOfRate,
		"charge": rowOfCharge, "charge_sum": rowOfChargeSum, "adjustment": rowOfAdjustment,
		"budget": rowOfBudget, "reconciliation": rowOfReconciliation, "row_digest": rowOfRowDigest,
		"summed_month": rowOfSummedMonth, "ledger_sample": rowOfLedgerSample, "ledger_use": rowOfLedgerUse,
		"ledger_comparison": rowOfLedgerComparison, "machine_class": rowOfMachineClass, "job": rowOfJob,
		"attempt": rowOfAttempt, "action": rowOfAction, "usage": rowOfUsage,
	}
}
