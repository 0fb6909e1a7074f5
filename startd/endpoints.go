package startd

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

const (
	// collectors drop the names of a machine that is silent for 15 seconds
	endpointRenewal = 4 * time.Second
	maxEndpoints    = 1024 // the most that collectors take from one machine
	// bounds on the rights to names, whatever a schedd sends
	maxSigners     = 64
	maxSignature   = 128
	maxCertificate = 2 << 10
)

// printedEndpoint is an endpoint as it was printed last, and what it was made of. A
// machine has up to a thousand, and one change must not cost as much as all of them.
type printedEndpoint struct {
	health      *wire.TaskHealth
	right       *wire.NameRight
	forOthers   bool
	value       classad.Value
	signer      string // key of the certificate; empty: there is no right
	certificate string // in base64
}

// printEndpoint returns the endpoint of a claim. It makes it anew only if it has changed.
func printEndpoint(l *machineLoop, c *slot.Claim, h claim.HealthEvent, forOthers bool) printedEndpoint {
	p, ok := l.printedEndpoints[c.ID]
	if ok && p.health == h.Health && p.right == h.Right && p.forOthers == forOthers {
		return p
	}
	described := endpointAd(h, c.Schedd, c.Owner, forOthers)
	p = printedEndpoint{health: h.Health, right: h.Right, forOthers: forOthers, signer: addRight(described, h.Right)}
	if p.signer != "" {
		p.certificate = base64.StdEncoding.EncodeToString(h.Right.GetCertificate())
	}
	p.value = classad.PrintedAd(described)
	l.printedEndpoints[c.ID] = p
	return p
}

// describeEndpoints says in the machine's ad where the tasks of services are reached. The
// address is left out: collectors believe only the one from which the ad comes.
func (l *machineLoop) describeEndpoints(ad *classad.Ad) {
	var list, signers []classad.Value
	signed, forOthers := map[string]bool{}, l.host.ports.HasOtherClients()
	for _, id := range slices.Sorted(maps.Keys(l.health)) {
		h := l.health[id]
		c, ok := l.table.Find(h.ID)
		if ok && c.ID == id && len(list) < maxEndpoints {
			p := printEndpoint(l, c, h, forOthers)
			if p.signer != "" && !signed[p.signer] && len(signers) < maxSigners {
				signed[p.signer] = true
				signers = append(signers, classad.StringValue(p.certificate))
			}
			list = append(list, p.value)
		}
	}
	if len(list) == 0 {
		l.host.ads.SetRenewal(0)
		return
	}
	ad.SetValue(roost.AttrEndpoints, classad.ListValue(list...))
	if len(signers) > 0 {
		ad.SetValue(roost.AttrEndpointSigners, classad.ListValue(signers...))
	}
	l.host.ads.SetRenewal(endpointRenewal)
}

// endpointAd describes one attempt of a service. If other machines read it, it has no
// ports that are on the loopback address: there they would lead to other programs.
func endpointAd(h claim.HealthEvent, schedd, owner string, forOthers bool) *classad.Ad {
	ad := classad.New()
	a := h.Health.GetAttempt()
	ad.SetString("Job", fmt.Sprintf("%d.%s", a.GetJob(), schedd))
	ad.SetString("Name", h.Name)
	ad.SetString("Owner", owner)
	ad.SetInt("Index", int64(a.GetIndex()))
	ad.SetInt("Attempt", int64(a.GetAttempt()))
	ad.SetInt("Revision", int64(h.Revision))
	ad.SetString("State", endpointState(h.Health.GetState()))
	ports := classad.New()
	for _, name := range slices.Sorted(maps.Keys(h.Ports)) {
		if !forOthers || !h.Ports[name].Addr().IsLoopback() {
			// the name of an attribute has an underscore for the hyphen
			ports.SetInt(strings.ReplaceAll(name, "-", "_"), int64(h.Ports[name].Port()))
		}
	}
	if ports.Len() > 0 {
		ad.SetAd("Ports", ports)
	}
	return ad
}

// addRight adds to an endpoint the right of its attempt to the name. It returns the key
// of the certificate that the right was signed with; empty: there is no right.
func addRight(ad *classad.Ad, r *wire.NameRight) (signer string) {
	if len(r.GetSignature()) == 0 || len(r.GetSignature()) > maxSignature || len(r.GetCertificate()) > maxCertificate {
		return ""
	}
	signer = roost.NameSignerKey(r.GetCertificate())
	ad.SetInt("Expires", r.GetExpiresS())
	ad.SetString("Signature", base64.StdEncoding.EncodeToString(r.GetSignature()))
	ad.SetString("Signer", signer)
	return signer
}

// endpointState returns a state in the words of the ad. A task that is about to be ended
// because a check for live has failed takes no connections, as any other unready one.
func endpointState(s wire.HealthState) string {
	switch s {
	case wire.HealthState_HEALTH_STATE_READY:
		return "ready"
	case wire.HealthState_HEALTH_STATE_LEAVING:
		return "leaving"
	case wire.HealthState_HEALTH_STATE_UNREADY, wire.HealthState_HEALTH_STATE_FAILING:
		return "unready"
	}
	return "starting"
}
