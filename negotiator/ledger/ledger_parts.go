package ledger

// commandApplier applies the commands of administrators to a ledger.
type commandApplier struct{ *Ledger }

// pendingGrantTable has the grants of a ledger that are not claims yet.
type pendingGrantTable struct{ *Ledger }

func (l *Ledger) commands() commandApplier { return commandApplier{l} }

func (l *Ledger) grantTable() pendingGrantTable { return pendingGrantTable{l} }
