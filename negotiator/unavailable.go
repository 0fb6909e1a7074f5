package negotiator

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// sendUnavailable sends the schedds the drains and reservations, if they have changed.
// Naively it would be enough to grant nothing there. But a schedd with a claim starts its
// next task on it without asking, for as long as the claim is young.
func (c *leaderState) sendUnavailable(all []match.UnavailableWindow) {
	if c.unavailableSent && slices.Equal(c.sentUnavailable, all) {
		return
	}
	c.sentUnavailable, c.unavailableSent = all, true
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		if s := c.schedds[name]; s.sendQueue != nil && s.sendQueue.guestOf == "" {
			s.sendQueue.putMessage(c.unavailableMessage())
		}
	}
}

func (c *leaderState) unavailableMessage() *wire.ToSchedd {
	m := &wire.Kept{}
	for _, k := range c.sentUnavailable {
		m.Nodes = append(m.Nodes, &wire.KeptNode{Node: k.Machine, From: k.From, Until: k.Until,
			Reservation: k.Reservation})
	}
	return &wire.ToSchedd{Of: &wire.ToSchedd_Kept{Kept: m}}
}
