package wire

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// FromResources converts a vector to its message.
func FromResources(r roost.Resources) *Resources { return scheddapi.FromResources(r) }

// FromAttempt refers to an attempt in a conversation with its schedd.
func FromAttempt(id roost.AttemptID) *AttemptRef { return scheddapi.FromAttempt(id) }

// FromParty returns the message of a party to a preemption.
func FromParty(p roost.PreemptionParty) *PreemptionParty {
	return &PreemptionParty{Job: p.Job, Owner: p.Owner, Band: p.Band.String()}
}

// FromParties returns the messages of parties to a preemption.
func FromParties(all []roost.PreemptionParty) (list []*PreemptionParty) {
	for _, p := range all {
		list = append(list, FromParty(p))
	}
	return list
}
