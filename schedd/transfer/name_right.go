package transfer

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// SignNameRights returns send with signatures under the rights of attempts to their
// names. The node is that in the certificate of the machine. It is done here and not in
// the loop, which has no time for it.
func (t *FileTransfers) SignNameRights(node string, send func(*wire.ToStartd) error) func(*wire.ToStartd) error {
	return func(m *wire.ToStartd) error {
		if a := m.GetActivate(); a.GetProgram().GetService().GetNameRight() != nil {
			t.signNameRight(a.GetProgram().GetService().GetNameRight(), a.GetAttempt(), roost.NameRight{
				Owner: a.GetProgram().GetUser(), Name: a.GetProgram().GetJobName(), Machine: node})
		}
		if r := m.GetNameRight(); r.GetRight() != nil {
			t.signNameRight(r.GetRight(), r.GetAttempt(), roost.NameRight{Owner: r.GetOwner(), Name: r.GetName(),
				Machine: node})
		}
		return send(m)
	}
}

// signNameRight signs the right of an attempt. Without a signature the attempt runs, but
// collectors give it no name.
func (t *FileTransfers) signNameRight(w *wire.NameRight, a *wire.AttemptRef, r roost.NameRight) {
	r.Job, r.Expires = fmt.Sprintf("%d.%s", a.GetJob(), t.host), w.GetExpiresS()
	r.Index, r.Attempt = a.GetIndex(), a.GetAttempt()
	signature, certificates, err := t.identity.Sign(roost.NameRightUse, r.Text())
	if err != nil {
		t.log.Warn("an attempt of a service has no right to its name", "job", r.Job, "machine", r.Machine, "err", err)
		return
	}
	w.Signature, w.Certificate = signature, certificates[0]
}
