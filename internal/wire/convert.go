package wire

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// FromResources converts a vector to its message.
func FromResources(r roost.Resources) *Resources { return scheddapi.FromResources(r) }

// FromAttempt refers to an attempt in a conversation with its schedd.
func FromAttempt(id roost.AttemptID) *AttemptRef { return scheddapi.FromAttempt(id) }
