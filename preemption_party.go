package roost

// PreemptionParty is a job that displaced another by preemption, or that was displaced.
type PreemptionParty struct {
	Job   string // its id, as in "123.host"; empty: not known to the node
	Owner string
	Band  PriorityBand
}
