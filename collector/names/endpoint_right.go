package names

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// CheckRight returns why a right with that signature and certificate is not valid, or
// nil.
type CheckRight func(r roost.NameRight, signature, certificate []byte) error

// Bounds on what one ad costs.
const (
	maxSigners      = 64
	maxSignerText   = 4 << 10 // bytes in base64
	maxFailedRights = 16      // then the other new endpoints of the ad are not checked
)

// checkRight checks that the job's schedd lets the machine have the name. A signature
// that was valid in the ad before is valid: it is checked once.
func (r *adReader) checkRight(e *Endpoint) error {
	switch {
	case r.ad.Check == nil:
		return nil
	case e.proof.signature == "":
		return fmt.Errorf("task %d of job %s: %w: its schedd has not signed that the task may have its name: "+
			"the schedd or the machine runs an older release", e.Index, e.Job, roost.Unauthenticated)
	case e.proof.expires <= r.now.Unix():
		return fmt.Errorf("task %d of job %s: %w: its right to the name expired at %s: is a clock wrong, or is its "+
			"schedd away?", e.Index, e.Job, roost.Unauthenticated,
			time.Unix(e.proof.expires, 0).UTC().Format(time.RFC3339))
	case !r.reparse && slices.ContainsFunc(r.old, func(o endpointText) bool {
		return o.endpoint.proof == e.proof && o.endpoint.right() == e.right()
	}):
		return nil
	case r.failures >= maxFailedRights:
		return fmt.Errorf("task %d of job %s: %w: the rights of %d others of the machine are not valid, so it is not "+
			"checked", e.Index, e.Job, roost.PermissionDenied, maxFailedRights)
	}
	if r.signers == nil {
		r.signers = readSigners(r.ad.Text)
	}
	signature, err := base64.StdEncoding.DecodeString(e.proof.signature)
	if err == nil {
		err = r.ad.Check(e.right(), signature, r.signers[e.proof.signer])
	}
	if err != nil {
		r.failures++
		return fmt.Errorf("task %d of job %s: %w: its right to the name is not valid: %w", e.Index, e.Job,
			roost.PermissionDenied, err)
	}
	return nil
}

// readSigners returns the certificates in an ad by their keys.
func readSigners(ad string) map[string][]byte {
	signers := map[string][]byte{}
	text, ok := classad.ProjectAd(ad, func(name string) bool {
		return strings.EqualFold(name, roost.AttrEndpointSigners)
	})
	if !ok || len(text) > maxSigners*maxSignerText {
		return signers
	}
	parsed, err := classad.Parse(text)
	if err != nil {
		return signers
	}
	list, _ := parsed.Strings(roost.AttrEndpointSigners)
	for _, encoded := range list[:min(len(list), maxSigners)] {
		if der, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			signers[roost.NameSignerKey(der)] = der
		}
	}
	return signers
}

// dropExpired drops the endpoints of a machine whose rights have expired.
func (z *Zone) dropExpired(now time.Time, m *machine) {
	r := adReader{old: m.endpoints, used: make([]bool, len(m.endpoints))}
	for i, e := range m.endpoints {
		if e.endpoint.proof.expires > now.Unix() {
			r.used[i] = true
			r.next = append(r.next, e)
		} else {
			z.refused++
		}
	}
	z.replaceEndpoints(now, m, r)
	m.setRightsEnd(m.checked)
	if len(m.endpoints) == 0 {
		z.forgetMachine(m)
	}
}

// setRightsEnd notes when the first right of the machine's endpoints expires.
func (m *machine) setRightsEnd(checked bool) {
	m.checked, m.rightsEnd = checked, 0
	if !checked {
		return
	}
	for _, e := range m.endpoints {
		if end := e.endpoint.proof.expires; m.rightsEnd == 0 || end < m.rightsEnd {
			m.rightsEnd = end
		}
	}
}
