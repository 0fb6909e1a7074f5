package ca

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/wire"
)

func sortedNames(certs map[string]*certRecord) []string { return slices.Sorted(maps.Keys(certs)) }

// OfferPeer implements wire.AuthorityServer.
func (s *authorityService) OfferPeer(ctx context.Context, req *wire.OfferPeerRequest) (*wire.OfferPeerReply, error) {
	uid, err := requireLocalAdmin(ctx)
	if err != nil {
		return nil, err
	}
	r, secret, err := s.store.offerPeer(req.GetName(), time.Duration(req.GetLife()), time.Duration(req.GetDaysNs()),
		time.Now())
	if err != nil {
		return nil, err
	}
	cert := s.store.ca.Certificate()
	sum := Fingerprint(cert)
	offer, err := proto.Marshal(&wire.PeerOffer{Version: offerVersion, Pool: s.node.Pool, Name: r.Name,
		Address: s.node.AuthorityAt, Secret: secret, Expires: r.Expires, AuthorityDigest: sum[:]})
	if err != nil {
		return nil, err
	}
	s.log.Info("offered machines to another pool", "peer", r.Name, "expires", formatTime(r.Expires), "uid", uid)
	return &wire.OfferPeerReply{Offer: offer, Signature: s.store.ca.Sign(offerPurpose, offer), Authority: cert.Raw,
		Info: r.info()}, nil
}

// offerBlock is the type of the PEM block of an offer.
const offerBlock = "ROOST PEER OFFER"

// EncodeOffer writes the text of an offer, which its administrator passes on.
func EncodeOffer(made *wire.OfferPeerReply) ([]byte, error) {
	text, err := proto.Marshal(&wire.OfferPeerReply{Offer: made.GetOffer(), Signature: made.GetSignature(),
		Authority: made.GetAuthority()})
	return pem.EncodeToMemory(&pem.Block{Type: offerBlock, Bytes: text}), err
}

// ReadOffer reads the text of an offer, and the certificate of the authority that made
// it.
func ReadOffer(text []byte) (*wire.PeerOffer, *x509.Certificate, error) {
	block, _ := pem.Decode(text)
	made := new(wire.OfferPeerReply)
	if block == nil || block.Type != offerBlock || proto.Unmarshal(block.Bytes, made) != nil {
		return nil, nil, fmt.Errorf("offer: %w: the text has none: it has the lines that roost peer offer has "+
			"printed, "+
			"from BEGIN to END", roost.Invalid)
	}
	offer, err := parseOffer(made.GetAuthority(), made.GetOffer(), made.GetSignature())
	if err != nil {
		return nil, nil, err
	}
	authority, err := pki.ParseAuthority(made.GetAuthority())
	return offer, authority, err
}

// parseOffer reads an offer, and checks that nothing of it was changed.
func parseOffer(authority, offer, signature []byte) (*wire.PeerOffer, error) {
	cert, err := pki.ParseAuthority(authority)
	if err != nil {
		return nil, err
	}
	if err := pki.CheckSignature(cert, offerPurpose, offer, signature); err != nil {
		return nil, fmt.Errorf("offer: %w", err)
	}
	o := new(wire.PeerOffer)
	if err := proto.Unmarshal(offer, o); err != nil {
		return nil, fmt.Errorf("offer: %w: %w", roost.Invalid, err)
	}
	sum := Fingerprint(cert)
	switch {
	case o.GetVersion() > offerVersion:
		return nil, fmt.Errorf("offer: %w: it is of version %d, and this release reads %d: bring it up to date",
			roost.Invalid, o.GetVersion(), offerVersion)
	case [sha256.Size]byte(slices.Concat(o.GetAuthorityDigest(), make([]byte, sha256.Size))) != sum:
		return nil, fmt.Errorf("offer: %w: it names another authority", roost.Invalid)
	}
	return o, nil
}

// AcceptOffer implements wire.AuthorityServer. Wrong secrets are bounded as those of
// tokens are.
func (s *authorityService) AcceptOffer(ctx context.Context, req *wire.AcceptOfferRequest) (*wire.AcceptOfferReply,
	error) {
	host, origin := callOrigin(ctx)
	now := time.Now()
	r, err := s.store.acceptOffer(req.GetSecret(), req.GetAuthority(), host, now)
	if err != nil {
		return nil, s.refuseAnonymous("accept an offer", host, origin, now, err)
	}
	s.log.Info("another pool is a guest", "peer", r.Name, "from", host, "fingerprint", r.info().GetFingerprint())
	return &wire.AcceptOfferReply{Name: r.Name, Pool: s.node.Pool, Authority: s.store.ca.Certificate().Raw,
		Until: r.Until}, nil
}

// refuseAnonymous returns the error for a caller without a certificate who was refused. A
// caller who is right is never refused because of others at the same address.
func (s *authorityService) refuseAnonymous(what, host string, origin netip.Addr, now time.Time, err error) error {
	if wait := s.failedJoins.waitTime(origin, now); wait > 0 {
		return fmt.Errorf("peer: %w: too many calls of %s were refused: try again in %v", roost.Exhausted, host,
			wait.Round(time.Second)+time.Second)
	}
	s.failedJoins.recordFailure(origin, now)
	s.log.Warn("refused to "+what, "from", host, "why", err)
	return err
}

// SaveHost implements wire.AuthorityServer.
func (s *authorityService) SaveHost(ctx context.Context, req *wire.SaveHostRequest) (*wire.PeerInfo, error) {
	uid, err := requireLocalAdmin(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.store.saveHost(peerRecord{Name: req.GetName(), As: req.GetAs(), Address: req.GetAddress(),
		Authority: req.GetAuthority(), Until: req.GetUntil()}, time.Now())
	if err != nil {
		return nil, err
	}
	s.log.Info("another pool lends machines", "peer", r.Name, "as", r.As, "address", r.Address, "uid", uid)
	return r.info(), nil
}

// ListPeers implements wire.AuthorityServer.
func (s *authorityService) ListPeers(ctx context.Context, _ *wire.ListPeersRequest) (*wire.PeerList, error) {
	if _, err := requireLocalAdmin(ctx); err != nil {
		return nil, err
	}
	list, err := s.store.listPeers(time.Now())
	return &wire.PeerList{Peers: list}, err
}

// RevokePeer implements wire.AuthorityServer.
func (s *authorityService) RevokePeer(ctx context.Context, req *wire.RevokePeerRequest) (*wire.PeerInfo, error) {
	uid, err := requireLocalAdmin(ctx)
	if err != nil {
		return nil, err
	}
	reason := req.GetReason()
	if reason == "" {
		reason = "revoked by the administrator"
	}
	if len(reason) > maxReason {
		return nil, fmt.Errorf("reason: %w: it has more than %d letters", roost.Invalid, maxReason)
	}
	r, changed, err := s.store.revokePeer(req.GetName(), reason, time.Now())
	if err != nil {
		return nil, err
	}
	s.log.Info("revoked a peer", "peer", r.Name, "host", r.Host, "reason", reason, "uid", uid)
	if changed {
		err = s.renewRevocationList()
	}
	return r.info(), err
}

// VouchGuest implements wire.AuthorityServer. The authority itself calls nobody.
func (s *authorityService) VouchGuest(ctx context.Context, req *wire.VouchGuestRequest) (*wire.VouchGuestReply, error) {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Name == "" {
		return nil, fmt.Errorf("peer: %w: only a schedd can ask for this, with its certificate", roost.PermissionDenied)
	}
	now := time.Now()
	r, err := s.store.hostPeer(req.GetPeer(), now)
	if err != nil {
		return nil, err
	}
	public, err := pki.ParseRequest(req.GetRequest())
	if err != nil {
		return nil, err
	}
	voucher, signature, err := s.store.vouch(r, p.Name, public, now)
	if err != nil {
		return nil, err
	}
	return &wire.VouchGuestReply{Voucher: voucher, Signature: signature, Address: r.Address, Authority: r.Authority,
		As: r.As, Until: r.Until}, nil
}

// CertifyGuest implements wire.AuthorityServer.
func (s *authorityService) CertifyGuest(ctx context.Context, req *wire.CertifyGuestRequest) (*wire.CertifyGuestReply,
	error) {
	host, origin := callOrigin(ctx)
	now := time.Now()
	public, err := pki.ParseRequest(req.GetRequest())
	var record *certRecord
	if err == nil {
		record, err = s.store.certifyGuest(req.GetAs(), req.GetVoucher(), req.GetSignature(), public, host, now)
	}
	if err != nil {
		return nil, s.refuseAnonymous("certify a guest", host, origin, now, err)
	}
	s.log.Info("certified a guest", "name", record.Name, "peer", record.Guest, "from", host, "expires",
		formatTime(record.Expires))
	return &wire.CertifyGuestReply{Certificate: record.DER, Negotiators: s.node.Negotiators}, nil
}
