package transfer

import (
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/wire"
)

// SignImageRights returns send with rights added. Each attempt that may be checkpointed
// gets the right to its images on checkpoint servers: to put its own, and to get that
// from which it goes on. It is signed here and not in the loop, which has no time for it.
func (t *FileTransfers) SignImageRights(node string, send func(*wire.ToStartd) error) func(*wire.ToStartd) error {
	return func(m *wire.ToStartd) error {
		a := m.GetActivate()
		if policy := a.GetProgram().GetCheckpoint(); policy != nil && t.identity != nil {
			from := a.GetProgram().GetRestore()
			capability, err := store.SignRight(t.identity, &wire.ImageRight{
				Schedd: t.host, Node: node, Attempt: a.GetAttempt(), Origin: from.GetAttempt(),
				Sequence: from.GetSequence(),
			})
			if err != nil { // its images come here, as where there is no server
				t.log.Warn("no right to images on checkpoint servers", "node", node, "err", err)
			}
			policy.Capability = capability
		}
		return send(m)
	}
}
