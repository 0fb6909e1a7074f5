package roost

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// NameRightUse is the purpose in the signature of a NameRight.
const NameRightUse = "Roost name right 1"

// NameRight lets one machine have the name of one attempt of a service. The schedd of the
// job signs it. A machine without it could take the traffic of any service, by a claim
// that it runs a newer attempt of its tasks.
type NameRight struct {
	Job            string // "123.POOL"
	Index, Attempt uint32
	Owner, Name    string // as DNS labels, in lower case
	Machine        string // name of the node in its certificate
	Expires        int64  // unix seconds
}

// Text returns the text that is signed. Strings are quoted, so that two rights never have
// one text.
func (r NameRight) Text() []byte {
	return fmt.Appendf(nil, "%q %d %d %q %q %q %d", r.Job, r.Index, r.Attempt, strings.ToLower(r.Owner),
		strings.ToLower(r.Name), r.Machine, r.Expires)
}

// Schedd returns the name of the schedd, or of the cell's queue, that has the job.
func (r NameRight) Schedd() string {
	_, schedd, _ := strings.Cut(r.Job, ".")
	return schedd
}

// NameSignerKey returns what an endpoint has of the certificate with which its right was
// signed. The certificates themselves are in the machine's ad once each.
func NameSignerKey(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:8])
}
