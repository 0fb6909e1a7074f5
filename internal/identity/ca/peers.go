package ca

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/wire"
)

// Pools lend machines to each other by agreements of their administrators. The host makes
// an offer, which has a secret; the guest accepts it and leaves the certificate of its
// authority. From then on the guest's authority vouches for its schedds:
//
//	schedd of the guest      its authority       authority of the host
//	   │ ── VouchGuest ─────────▶ │                     │
//	   │ ◀── signed voucher ───── │                     │
//	   │ ── CertifyGuest: voucher, request for a key ─▶ │
//	   │ ◀── certificate with the role guest ────────── │
//
// The certificate of the other authority is good for vouchers alone: no node of the host
// accepts a connection because of it. So a guest has no more than what the role guest
// may, and ends with the certificates, which are valid for a day.

// Bounds on peers.
const (
	maxPeers         = 1000
	maxGuestSchedds  = 1000                  // of one guest, with a valid certificate
	guestValidity    = 24 * time.Hour        // of a guest's certificate
	voucherLife      = 5 * time.Minute       // of a voucher
	defaultOfferLife = 24 * time.Hour        // of an offer
	maxOfferLife     = 30 * 24 * time.Hour   // the longest
	maxAgreement     = 3660 * 24 * time.Hour // the longest time for which machines are lent
	offerVersion     = 1                     // of wire.PeerOffer
	maxPeerName      = 32                    // letters
	offerPurpose     = "peer offer"          // of a signature, for pki.Authority.Sign
	voucherPurpose   = "guest"               // likewise

)

// peerRecord is the record of another pool.
type peerRecord struct {
	Name      string        `json:"name"`
	Host      bool          `json:"host,omitempty"` // it lends machines to this pool
	Made      int64         `json:"made"`
	Expires   int64         `json:"expires,omitempty"`   // of an offer that is not accepted
	Secret    []byte        `json:"secret,omitempty"`    // digest of that of an offer
	Duration  time.Duration `json:"duration,omitempty"`  // of the agreement; 0: until it is revoked
	Accepted  int64         `json:"accepted,omitempty"`  // when the offer was accepted
	From      string        `json:"from,omitempty"`      // the host that accepted it
	Until     int64         `json:"until,omitempty"`     // end of the agreement; 0: until it is revoked
	Authority []byte        `json:"authority,omitempty"` // certificate of its authority, DER
	Revoked   int64         `json:"revoked,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	As        string        `json:"as,omitempty"`      // of a host: the name of this pool there
	Address   string        `json:"address,omitempty"` // of a host: that of its authority
}

// isOpen reports whether an agreement is in force.
func (r *peerRecord) isOpen(now time.Time) bool {
	return r.Accepted != 0 && r.Revoked == 0 && (r.Until == 0 || now.UnixNano() < r.Until)
}

// state returns why an agreement is not in force.
func (r *peerRecord) state(now time.Time) string {
	switch {
	case r.Revoked != 0:
		return fmt.Sprintf("it was revoked %s (%s)", formatTime(r.Revoked), r.Reason)
	case r.Accepted == 0:
		return "the offer was not accepted"
	case r.Until != 0 && now.UnixNano() >= r.Until:
		return "it ended " + formatTime(r.Until)
	}
	return "it is in force"
}

func peerKey(name string, host bool) []byte {
	kind := "guest"
	if host {
		kind = "host"
	}
	return []byte(kind + "\x00" + strings.ToLower(name))
}

// checkPeerName checks the name that this pool has for another one. It is a part of names
// of nodes, users and groups.
func checkPeerName(name string) error {
	ok := name != "" && len(name) <= maxPeerName
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		ok = ok && (letter || i > 0 && r == '-')
	}
	if !ok {
		return fmt.Errorf("peer %q: %w: a pool is named by at most %d small letters, digits and \"-\"", clip(name),
			roost.Invalid, maxPeerName)
	}
	return nil
}

// GuestNodeName returns the name that a schedd of a guest pool has at the host.
func GuestNodeName(schedd, pool string) string { return schedd + "." + pool }

// checkNoGuestName refuses the name of a machine that a guest may have.
func checkNoGuestName(tx *boltfile.Tx, name string) error {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return nil
	}
	_, found, err := loadRecord[peerRecord](tx, peersBucket, peerKey(name[i+1:], false))
	if err == nil && found {
		err = fmt.Errorf("node %s: %w: names that end in %s are those of the guests of that peer: choose another "+
			"with --name", name, roost.Conflict, name[i:])
	}
	return err
}

// offerPeer makes an offer for a guest pool. An offer that was not accepted, and an
// agreement that is over, are replaced.
func (s *certStore) offerPeer(name string, life, duration time.Duration, now time.Time) (*peerRecord, []byte, error) {
	if err := checkPeerName(name); err != nil {
		return nil, nil, err
	}
	if life == 0 {
		life = defaultOfferLife
	}
	if life < time.Minute || life > maxOfferLife {
		return nil, nil, fmt.Errorf("expires: %w: %v is not between a minute and 30 days", roost.Invalid, life)
	}
	if duration < 0 || duration > maxAgreement {
		return nil, nil, fmt.Errorf("days: %w: %v is not between 0 and ten years", roost.Invalid, duration)
	}
	secret := NewToken(s.ca.Certificate()).Secret
	r := &peerRecord{Name: name, Made: now.UnixNano(), Expires: now.Add(life).UnixNano(), Duration: duration,
		Secret: digest(secret[:])}
	err := s.db.Update(func(tx *boltfile.Tx) error {
		old, found, err := loadRecord[peerRecord](tx, peersBucket, peerKey(name, false))
		switch {
		case err != nil:
			return err
		case found && old.isOpen(now):
			return fmt.Errorf("peer %s: %w: a pool of that name is a guest since %s: roost peer revoke %s ends that",
				name, roost.Conflict, formatTime(old.Accepted), name)
		case !found && tx.Bucket(peersBucket).Len() >= maxPeers:
			return fmt.Errorf("peer %s: %w: there are %d peers, and no more are stored", name, roost.Exhausted,
				maxPeers)
		}
		if err := checkNoMemberName(tx, name, now); err != nil {
			return err
		}
		return saveRecord(tx, peersBucket, peerKey(name, false), r)
	})
	if err != nil {
		return nil, nil, err
	}
	return r, secret[:], nil
}

// checkNoMemberName refuses a peer if a machine has a name as the peer's schedds will. It
// is the other half of checkNoGuestName.
func checkNoMemberName(tx *boltfile.Tx, peer string, now time.Time) error {
	return eachRecord(tx, issuedBucket, func(_ []byte, i *certRecord) error {
		if i.isValid(now) && i.Part != guest && strings.HasSuffix(strings.ToLower(i.Name), "."+peer) {
			return fmt.Errorf("peer %s: %w: the name of the machine %s ends like those of its schedds would: "+
				"choose another name", peer, roost.Conflict, i.Name)
		}
		return nil
	})
}

// acceptOffer makes an agreement of an offer. A guest whose answer was lost gets the same
// again.
func (s *certStore) acceptOffer(secret, authority []byte, from string, now time.Time) (*peerRecord, error) {
	cert, err := pki.ParseAuthority(authority)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(cert.Raw, s.ca.Certificate().Raw) {
		return nil, fmt.Errorf("offer: %w: it was made by this pool: it is for another one", roost.Invalid)
	}
	var got *peerRecord
	find := func(tx *boltfile.Tx) error {
		got = nil
		err := eachRecord(tx, peersBucket, func(_ []byte, r *peerRecord) error {
			if !r.Host && len(r.Secret) > 0 && bytes.Equal(r.Secret, digest(secret)) {
				got = r
			}
			return nil
		})
		if err == nil && got == nil {
			err = fmt.Errorf("offer: %w: the pool %s knows no such offer: was a newer one made, or was it withdrawn? "+
				"Ask for a new one (roost peer offer)", roost.PermissionDenied, s.ca.Certificate().Subject.CommonName)
		}
		return err
	}
	if err := s.db.View(find); err != nil { // strangers cause no write
		return nil, err
	}
	err = s.db.Update(func(tx *boltfile.Tx) error {
		err := find(tx)
		switch {
		case err != nil:
			return err
		case got.isOpen(now) && bytes.Equal(got.Authority, authority):
			return nil
		case got.Accepted != 0 || got.Revoked != 0:
			return fmt.Errorf("offer: %w: it was accepted already, from %s, and an offer is good once: ask for a new "+
				"one (roost peer offer)", roost.PermissionDenied, got.From)
		case now.UnixNano() >= got.Expires:
			return fmt.Errorf("offer: %w: it ran out %s, and here it is %s: ask for a new one (roost peer offer)",
				roost.PermissionDenied, formatTime(got.Expires), formatTime(now.UnixNano()))
		}
		got.Accepted, got.From, got.Authority = now.UnixNano(), from, authority
		if got.Duration > 0 {
			got.Until = now.Add(got.Duration).UnixNano()
		}
		return saveRecord(tx, peersBucket, peerKey(got.Name, false), got)
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// saveHost stores a host pool whose offer this pool has accepted.
func (s *certStore) saveHost(r peerRecord, now time.Time) (*peerRecord, error) {
	if err := checkPeerName(r.Name); err != nil {
		return nil, err
	}
	if err := checkPeerName(r.As); err != nil {
		return nil, err
	}
	if _, err := pki.ParseAuthority(r.Authority); err != nil {
		return nil, err
	}
	r.Host, r.Made, r.Accepted = true, now.UnixNano(), now.UnixNano()
	return &r, s.db.Update(func(tx *boltfile.Tx) error {
		old, found, err := loadRecord[peerRecord](tx, peersBucket, peerKey(r.Name, true))
		switch {
		case err != nil:
			return err
		case found && old.isOpen(now) && !bytes.Equal(old.Authority, r.Authority):
			return fmt.Errorf("peer %s: %w: another pool has that name here: accept with --as, or let go of it with "+
				"roost peer revoke %s", r.Name, roost.Conflict, r.Name)
		case !found && tx.Bucket(peersBucket).Len() >= maxPeers:
			return fmt.Errorf("peer %s: %w: there are %d peers, and no more are stored", r.Name, roost.Exhausted,
				maxPeers)
		}
		return saveRecord(tx, peersBucket, peerKey(r.Name, true), &r)
	})
}

// revokePeer ends an agreement, or withdraws an offer. All certificates of the guest's
// schedds are revoked. Changed reports whether there were any.
func (s *certStore) revokePeer(name, reason string, now time.Time) (got *peerRecord, changed bool, err error) {
	err = s.db.Update(func(tx *boltfile.Tx) error {
		for _, host := range []bool{false, true} {
			r, found, err := loadRecord[peerRecord](tx, peersBucket, peerKey(name, host))
			if err != nil {
				return err
			}
			if !found || r.Revoked != 0 {
				continue
			}
			got, r.Revoked, r.Reason = r, now.UnixNano(), reason
			if err := saveRecord(tx, peersBucket, peerKey(name, host), r); err != nil {
				return err
			}
			if host {
				continue
			}
			n, err := revokeGuests(tx, name, "peer "+name+": "+reason, now)
			if changed = changed || n > 0; err != nil {
				return err
			}
		}
		if got == nil {
			return fmt.Errorf("peer %q: %w: there is no agreement with a pool of that name, and no offer; roost peer "+
				"list shows those that there are", clip(name), roost.NotFound)
		}
		return nil
	})
	return got, changed, err
}

// revokeGuests revokes the certificates of all schedds of a guest pool.
func revokeGuests(tx *boltfile.Tx, pool, reason string, now time.Time) (n int, err error) {
	var names []string
	err = eachRecord(tx, issuedBucket, func(_ []byte, i *certRecord) error {
		if i.Part == guest && strings.EqualFold(i.Guest, pool) && i.isValid(now) {
			names = append(names, i.Name)
		}
		return nil
	})
	for _, name := range names {
		if err != nil {
			return n, err
		}
		var more int
		more, err = revokeCerts(tx, name, reason, now)
		n += more
	}
	return n, err
}

// hostPeer returns the host pool of that name, if its agreement is in force.
func (s *certStore) hostPeer(name string, now time.Time) (r *peerRecord, err error) {
	err = s.db.View(func(tx *boltfile.Tx) error {
		found := false
		r, found, err = loadRecord[peerRecord](tx, peersBucket, peerKey(name, true))
		if err == nil && !found {
			err = fmt.Errorf("peer %q: %w: this pool has accepted no offer of a pool of that name (roost peer accept)",
				clip(name), roost.NotFound)
		}
		if err == nil && !r.isOpen(now) {
			err = fmt.Errorf("peer %s: %w: %s", name, roost.PermissionDenied, r.state(now))
		}
		return err
	})
	return r, err
}

// vouch signs that a key is that of a schedd of this pool.
func (s *certStore) vouch(r *peerRecord, schedd string, public ed25519.PublicKey,
	now time.Time) (voucher, signature []byte, err error) {
	host := sha256.Sum256(r.Authority)
	voucher, err = proto.Marshal(&wire.GuestVoucher{Host: host[:], Schedd: schedd, Key: public,
		Expires: now.Add(voucherLife).UnixNano()})
	if err != nil {
		return nil, nil, err
	}
	return voucher, s.ca.Sign(voucherPurpose, voucher), nil
}

// readVoucher returns what a guest's authority has vouched for.
func (s *certStore) readVoucher(r *peerRecord, voucher, signature []byte, now time.Time) (*wire.GuestVoucher, error) {
	authority, err := x509.ParseCertificate(r.Authority)
	if err != nil {
		return nil, err
	}
	if err := pki.CheckSignature(authority, voucherPurpose, voucher, signature); err != nil {
		return nil, err
	}
	v := new(wire.GuestVoucher)
	if err := proto.Unmarshal(voucher, v); err != nil {
		return nil, fmt.Errorf("voucher: %w: %w", roost.Invalid, err)
	}
	own := Fingerprint(s.ca.Certificate())
	left := time.Duration(v.GetExpires() - now.UnixNano())
	switch {
	case !bytes.Equal(v.GetHost(), own[:]):
		return nil, fmt.Errorf("voucher: %w: it is for another pool", roost.PermissionDenied)
	case left <= 0 || left > 2*voucherLife:
		return nil, fmt.Errorf("voucher: %w: it is good until %s, and here it is %s: are the clocks right?",
			roost.PermissionDenied, formatTime(v.GetExpires()), formatTime(now.UnixNano()))
	case !isValidNodeName(v.GetSchedd()) || !isValidNodeName(GuestNodeName(v.GetSchedd(), r.Name)):
		return nil, fmt.Errorf("voucher: %w: %q is no name of a schedd", roost.Invalid, clip(v.GetSchedd()))
	}
	return v, nil
}

// certifyGuest issues the certificate of a guest's schedd.
func (s *certStore) certifyGuest(as string, voucher, signature []byte, public ed25519.PublicKey, from string,
	now time.Time) (got *certRecord, err error) {
	var r *peerRecord
	var v *wire.GuestVoucher
	check := func(tx *boltfile.Tx) (err error) {
		r, v, err = s.checkGuest(tx, as, voucher, signature, public, now)
		return err
	}
	if err := s.db.View(check); err != nil { // strangers cause no write
		return nil, err
	}
	err = s.db.Update(func(tx *boltfile.Tx) error {
		if err := check(tx); err != nil {
			return err
		}
		name := GuestNodeName(v.GetSchedd(), r.Name)
		if err := s.checkGuestRoom(tx, r.Name, name, now); err != nil {
			return err
		}
		validity := guestValidity
		if r.Until != 0 {
			validity = min(validity, time.Duration(r.Until-now.UnixNano()))
		}
		got, _, err = s.issueCert(tx, certRecord{Name: name, Part: guest, Roles: roleNames(guest.Roles()),
			Guest:    r.Name,
			FromHost: from, validity: validity}, public, now)
		return err
	})
	return got, err
}

// checkGuest returns the peer and the voucher of a schedd that may have a certificate.
func (s *certStore) checkGuest(tx *boltfile.Tx, as string, voucher, signature []byte, public ed25519.PublicKey,
	now time.Time) (*peerRecord, *wire.GuestVoucher, error) {
	r, found, err := loadRecord[peerRecord](tx, peersBucket, peerKey(as, false))
	switch {
	case err != nil:
		return nil, nil, err
	case !found:
		return nil, nil, fmt.Errorf("peer %q: %w: this pool lends machines to no pool of that name", clip(as),
			roost.PermissionDenied)
	case !r.isOpen(now):
		return nil, nil, fmt.Errorf("peer %s: %w: the agreement is not in force: %s", r.Name, roost.PermissionDenied,
			r.state(now))
	}
	v, err := s.readVoucher(r, voucher, signature, now)
	if err == nil && !public.Equal(ed25519.PublicKey(v.GetKey())) {
		err = fmt.Errorf("voucher: %w: it is for another key", roost.PermissionDenied)
	}
	return r, v, err
}

// checkGuestRoom checks that a guest may have one more certificate.
func (s *certStore) checkGuestRoom(tx *boltfile.Tx, pool, name string, now time.Time) error {
	if err := s.recordManualCert(tx, name); err != nil {
		return err
	}
	own, others := 0, map[string]bool{}
	err := eachRecord(tx, issuedBucket, func(_ []byte, i *certRecord) error {
		switch {
		case !i.isValid(now):
		case strings.EqualFold(i.Name, name) && i.Part != guest:
			return fmt.Errorf("guest %s: %w: a machine of the pool has that name", name, roost.Conflict)
		case i.Part != guest || i.Guest != pool:
		case i.Name == name:
			own++
		default:
			others[i.Name] = true
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(others) >= maxGuestSchedds:
		return fmt.Errorf("guest %s: %w: its pool has %d schedds here, and no more are certified", name,
			roost.Exhausted, maxGuestSchedds)
	case own >= maxValidCerts:
		return fmt.Errorf("guest %s: %w: it has %d valid certificates; it asks too often", name, roost.Exhausted, own)
	}
	return nil
}

// info returns what the administrator is shown of a peer.
func (r *peerRecord) info() *wire.PeerInfo {
	p := &wire.PeerInfo{Name: r.Name, Host: r.Host, As: r.As, Address: r.Address, Made: r.Made, Expires: r.Expires,
		Accepted: r.Accepted, Until: r.Until, Revoked: r.Revoked, Reason: r.Reason, AcceptedFrom: r.From,
		DaysNs: int64(r.Duration)}
	if cert, err := x509.ParseCertificate(r.Authority); err == nil {
		sum := Fingerprint(cert)
		p.Pool, p.Fingerprint = cert.Subject.CommonName, hex.EncodeToString(sum[:])
	}
	return p
}

// listPeers lists all peers, guests first, by name.
func (s *certStore) listPeers(now time.Time) (list []*wire.PeerInfo, err error) {
	err = s.db.View(func(tx *boltfile.Tx) error {
		err := eachRecord(tx, peersBucket, func(_ []byte, r *peerRecord) error {
			list = append(list, r.info())
			return nil
		})
		if err != nil {
			return err
		}
		newest := map[string]*certRecord{}
		err = eachRecord(tx, issuedBucket, func(_ []byte, i *certRecord) error {
			if i.Part == guest && i.isValid(now) && (newest[i.Name] == nil || newest[i.Name].Expires < i.Expires) {
				newest[i.Name] = i
			}
			return nil
		})
		for _, p := range list {
			if p.Host {
				continue
			}
			for _, name := range sortedNames(newest) {
				if i := newest[name]; i.Guest == p.Name {
					p.Schedds = append(p.Schedds, &wire.GuestSchedd{Name: name, Expires: i.Expires, From: i.FromHost})
				}
			}
		}
		return err
	})
	return list, err
}
