package roost

// GrantID names a grant. Ids are unique within one epoch of the negotiator.
type GrantID struct{ Epoch, ID uint64 }
