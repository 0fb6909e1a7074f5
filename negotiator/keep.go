package negotiator

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// keep tells the schedds what is drained and reserved where that has changed. Naively it would be enough to grant nothing there; but a schedd that has a
// claim puts its next task on it without asking, for as long as the claim is young.
func (c *cell) keep(all []match.Kept) {
	if c.keeps && slices.Equal(c.kept, all) {
		return
	}
	c.kept, c.keeps = all, true
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		if s := c.schedds[name]; s.mail != nil {
			s.mail.put(c.keepsFree())
		}
	}
}

func (c *cell) keepsFree() *wire.ToSchedd {
	m := &wire.Kept{}
	for _, k := range c.kept {
		m.Nodes = append(m.Nodes, &wire.KeptNode{Node: k.Machine, From: k.From, Until: k.Until, Reservation: k.Reservation})
	}
	return &wire.ToSchedd{Of: &wire.ToSchedd_Kept{Kept: m}}
}
