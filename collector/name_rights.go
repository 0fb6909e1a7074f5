package collector

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
)

// Bounds on the certificates whose check is remembered.
const (
	maxRememberedSigners = 1024
	signerLifetime       = 10 * time.Second
)

// rightChecker checks the rights of machines to the names of attempts. A right is signed
// by the schedd of the job, whose certificate comes with it and is checked as that of a
// connection is. The naive way does that for each signature, and reads the files of
// revoked certificates each time; the result is remembered for signerLifetime. It is used
// by the owner of the ads only.
type rightChecker struct {
	id      *rpc.Identity
	signers map[string]rememberedSigner // by certificate
}

type rememberedSigner struct {
	signer rpc.TextSigner
	err    error
	until  time.Time
}

func newRightChecker(id *rpc.Identity) *rightChecker {
	return &rightChecker{id: id, signers: map[string]rememberedSigner{}}
}

// check implements names.CheckRight.
func (c *rightChecker) check(r roost.NameRight, signature, certificate []byte) error {
	s := c.signer(certificate)
	if s.err != nil {
		return s.err
	}
	by, schedd := s.signer.Peer, r.Schedd()
	if (!by.Plays(peer.Schedd) || by.Name != schedd) && (by.CellQueue == "" || by.CellQueue != schedd) {
		return fmt.Errorf("%w: %s signed it, which does not speak for %s", roost.PermissionDenied, by.Name, schedd)
	}
	return s.signer.Check(roost.NameRightUse, r.Text(), signature)
}

// signer returns the node of a certificate, or why it is not valid.
func (c *rightChecker) signer(certificate []byte) rememberedSigner {
	now := time.Now()
	if s, ok := c.signers[string(certificate)]; ok && now.Before(s.until) {
		return s
	}
	if len(c.signers) >= maxRememberedSigners {
		clear(c.signers)
	}
	s := rememberedSigner{until: now.Add(signerLifetime)}
	if len(certificate) == 0 {
		s.err = fmt.Errorf("%w: the certificate of the signer is not in the ad", roost.Unauthenticated)
	} else {
		s.signer, s.err = c.id.CheckSigner([][]byte{certificate})
	}
	c.signers[string(certificate)] = s
	return s
}
