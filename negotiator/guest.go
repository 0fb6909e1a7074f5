package negotiator

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// Guests are schedds of other pools. What a guest says of itself is a claim: users are of
// its own pool, whatever they are called; all are in the group of the pool, in the lowest
// band, and come after the requests of this pool. What they hold is read from the ads of
// the machines.

// guestOf returns the pool of a calling guest, from its certificate; "" for others.
func guestOf(ctx context.Context) string {
	p, _ := peer.FromContext(ctx)
	if p.Local || !p.Plays(peer.Guest) {
		return ""
	}
	return p.GuestOf
}

// guestMessage returns what is taken in of a message of a guest, nil for nothing.
func guestMessage(pool string, m *wire.FromSchedd) *wire.FromSchedd {
	switch of := m.GetOf().(type) {
	case *wire.FromSchedd_Request:
		r := proto.CloneOf(of.Request)
		if r.Owner != "" {
			r.Owner = peer.GuestUser(r.Owner, pool)
		}
		r.Group, r.Band = peer.GuestGroup(pool), roost.FreeBand.String()
		r.Now, r.Reservation, r.Queue, r.UnixGroup, r.Proposals = false, "", "", "", nil
		return &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: r}}
	case *wire.FromSchedd_Result, *wire.FromSchedd_Told, *wire.FromSchedd_PolicySeen, *wire.FromSchedd_Why:
		return m
	case *wire.FromSchedd_Admit:
		return &wire.FromSchedd{Of: &wire.FromSchedd_Admit{Admit: &wire.Admit{Id: of.Admit.GetId()}}}
	}
	return nil // usage, demands and outcomes
}

// submitterProblem returns why a schedd may not have requests of a submitter, or "".
func (s *scheddState) submitterProblem(who fairshare.Submitter) string {
	guest := s.sendQueue != nil && s.sendQueue.guestOf != ""
	switch {
	case who.Owner == "":
		return "the request names no owner"
	case guest && (strings.Count(who.Owner, "@") != 1 || strings.ContainsAny(who.Owner, " /\"\\\n\x00") ||
		len(who.Owner) > maxGuestUser):
		return "the name of its owner cannot be that of a guest"
	case !guest && who.IsGuest():
		return "groups that begin with " + fairshare.GuestGroupPrefix + " are those of guests"
	}
	return ""
}

// maxGuestUser bounds the name of a user of a guest pool, in bytes.
const maxGuestUser = 200

// requestAd returns the ad of a request as it is matched. Of a guest it says so, and
// accepts only machines that accept guests. A text that is no ad is returned as it is.
func (s *scheddState) requestAd(text string) string {
	if s.sendQueue == nil || s.sendQueue.guestOf == "" {
		return text
	}
	ad, err := classad.Parse(cmp.Or(strings.TrimSpace(text), "[]"))
	if err != nil {
		return text
	}
	ad.SetString(peer.AttrGuestOf, s.sendQueue.guestOf)
	const accepts = "TARGET." + peer.AttrAcceptsGuests + " =?= true"
	requirements := accepts
	if own, ok := ad.Lookup(roost.AttrRequirements); ok {
		requirements = "(" + own.String() + ") && " + accepts
	}
	if err := ad.SetExpr(roost.AttrRequirements, requirements); err != nil {
		return text
	}
	return ad.String()
}

// guestUsage is what the claims of guests hold, from the ads of machines.
type guestUsage struct {
	held    map[fairshare.Submitter]roost.Resources
	changed map[fairshare.Submitter]bool // since takeChanged
}

func newGuestUsage() guestUsage {
	return guestUsage{map[fairshare.Submitter]roost.Resources{}, map[fairshare.Submitter]bool{}}
}

// addMachine adds what the claims of guests hold on a machine, or removes it if sign is
// -1.
func (u guestUsage) addMachine(m *inventoryMachine, sign int) {
	for i := range m.Claims {
		c := &m.Claims[i]
		if !c.Submitter.IsGuest() {
			continue
		}
		sum := u.held[c.Submitter]
		if sign > 0 {
			sum = sum.Add(c.Resources)
		} else {
			sum = sum.Sub(c.Resources)
		}
		u.changed[c.Submitter] = true
		if u.held[c.Submitter] = sum; sum == (roost.Resources{}) {
			delete(u.held, c.Submitter)
		}
	}
}

// takeChanged returns whose usage has changed since the last call, in order.
func (u guestUsage) takeChanged() []fairshare.Submitter {
	var all []fairshare.Submitter
	for who := range u.changed {
		all = append(all, who)
	}
	clear(u.changed)
	slices.SortFunc(all, fairshare.Submitter.Compare)
	return all
}
