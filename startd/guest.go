package startd

import (
	"context"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// guestSession is what the certificate of a guest says: a schedd of another pool. It is
// zero for schedds of this pool.
type guestSession struct{ pool, serial string }

// guestOf returns what the certificate of a caller says of a guest.
func guestOf(ctx context.Context) guestSession {
	p, _ := peer.FromContext(ctx)
	if p.Local || !p.Plays(peer.Guest) {
		return guestSession{}
	}
	return guestSession{p.GuestOf, p.Serial}
}

// refusal returns why a guest may not have a claim. The claim token is over user, group
// and band; this finds a negotiator that has taken a guest for one of its own pool.
func (g guestSession) refusal(r *wire.ClaimRequest) error {
	if g.pool == "" {
		return nil
	}
	switch {
	case !strings.HasSuffix(r.GetOwner(), peer.GuestUser("", g.pool)) || strings.Count(r.GetOwner(), "@") != 1 ||
		r.GetGroup() != peer.GuestGroup(g.pool):
		return fmt.Errorf("%w: %q of group %q is no user of the guest pool %s", roost.PermissionDenied, r.GetOwner(),
			r.GetGroup(), g.pool)
	case r.GetBand() != roost.FreeBand.String():
		return fmt.Errorf("%w: guests are in band %s, and this is band %q", roost.PermissionDenied, roost.FreeBand,
			r.GetBand())
	}
	return nil
}

// describe writes into the ad of a guest's request what the machine's policy may rely on.
func (g guestSession) describe(ad *classad.Ad, r *wire.ClaimRequest) {
	if g.pool == "" || ad == nil {
		return
	}
	ad.SetString(roost.AttrOwner, r.GetOwner())
	ad.SetString(roost.AttrGroup, r.GetGroup())
	ad.SetString(roost.AttrBand, r.GetBand())
	ad.SetString(peer.AttrGuestOf, g.pool)
	ad.Delete(roost.AttrFileSystemDomain) // it means nothing here
	ad.Delete(roost.AttrSubmitHost)
}

// refuses returns why a guest's program is not run, "" where it is. Images and packages
// of this pool are for its own users.
func (g guestSession) refuses(p *wire.Program) string {
	if g.pool != "" && (p.GetContainer() != nil || len(p.GetPackages()) > 0) {
		return "the images and packages of this pool are not for guests"
	}
	return ""
}

// guestSchedds has the serial number of the last certificate of each guest that had a
// session, by the guest's name.
type guestSchedds map[string]string

// note notes the certificate of a session.
func (g guestSchedds) note(s *scheddSession) {
	if s.guest.pool != "" {
		g[s.schedd] = s.guest.serial
	}
}

// endRevokedGuests ends the claims of guests whose certificates are revoked. Their
// sessions end by themselves, and could not be opened again.
func endRevokedGuests(l *machineLoop) {
	id := l.host.identity
	if len(l.guests) == 0 || id == nil || id.IsRevoked == nil {
		return
	}
	if id.Refresh != nil {
		id.Refresh()
	}
	for schedd, serial := range l.guests {
		if !id.IsRevoked(serial) {
			continue
		}
		delete(l.guests, schedd)
		l.host.log.Warn("ended the claims of a guest whose certificate is revoked", "schedd", schedd)
		for _, c := range l.table.ClaimsOf(schedd) {
			l.table.EndClaim(c.ID, true, "the agreement with its pool has ended")
		}
	}
}
