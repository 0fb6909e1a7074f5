package ca

import (
	"crypto/x509"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// newPeerStore is newStore for a pool of that name.
func newPeerStore(t testing.TB, pool string) *certStore {
	t.Helper()
	dir := filepath.Join(t.TempDir(), pool)
	if err := pki.Init(dir, pool); err != nil {
		t.Fatal(err)
	}
	return reopen(t, dir)
}

// flockOf makes guest a guest of host, where it is called "chem".
func flockOf(t testing.TB, host, guest *certStore) *peerRecord {
	t.Helper()
	_, secret, err := host.offerPeer("chem", 0, 0, noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.acceptOffer(secret, guest.ca.Certificate().Raw, "10.1.0.1", noon); err != nil {
		t.Fatal(err)
	}
	r, err := guest.saveHost(peerRecord{Name: "phys", As: "chem", Address: "10.0.0.1:9700",
		Authority: host.ca.Certificate().Raw}, noon)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOfferIsGoodOnce checks that an offer makes one pool a guest, and no other.
func TestOfferIsGoodOnce(t *testing.T) {
	host, guest, other := newPeerStore(t, "phys"), newPeerStore(t, "chemistry"), newPeerStore(t, "thieves")
	r, secret, err := host.offerPeer("chem", time.Hour, 48*time.Hour, noon)
	if err != nil || r.isOpen(noon) {
		t.Fatalf("got %+v, %v", r, err)
	}
	own := guest.ca.Certificate().Raw
	if _, err := host.acceptOffer([]byte("guessed"), own, "x", noon); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("another secret: %v", err)
	}
	if _, err := host.acceptOffer(secret, host.ca.Certificate().Raw, "x", noon); !errors.Is(err, roost.Invalid) {
		t.Errorf("its own pool: %v", err)
	}
	leaf, _, err := other.ca.Issue("n1", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.acceptOffer(secret, leaf, "x", noon); !errors.Is(err, roost.Invalid) {
		t.Errorf("a certificate that is no authority's: %v", err)
	}
	if _, err := host.acceptOffer(secret, own, "x", noon.Add(time.Hour)); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("too late: %v", err)
	}
	for range 2 { // the answer may be lost
		got, err := host.acceptOffer(secret, own, "10.1.0.1", noon)
		if err != nil || !got.isOpen(noon) || got.isOpen(noon.Add(48*time.Hour)) {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if _, err := host.acceptOffer(secret, other.ca.Certificate().Raw, "x", noon); !errors.Is(err,
		roost.PermissionDenied) || !strings.Contains(err.Error(), "accepted already, from 10.1.0.1") {
		t.Errorf("a second pool: %v", err)
	}
	if _, _, err := host.offerPeer("chem", 0, 0, noon); !errors.Is(err, roost.Conflict) {
		t.Errorf("an offer to a guest: %v", err)
	}
	for _, name := range []string{"", "Chem", "a.b", "-a", "a:b", "a@b", strings.Repeat("a", 33)} {
		if _, _, err := host.offerPeer(name, 0, 0, noon); !errors.Is(err, roost.Invalid) {
			t.Errorf("a peer %q: %v", name, err)
		}
	}
}

// TestOfferText checks that a changed offer is refused before anything is sent.
func TestOfferText(t *testing.T) {
	host, other := newPeerStore(t, "phys"), newPeerStore(t, "thieves")
	sum := Fingerprint(host.ca.Certificate())
	text := func(change func(*wire.PeerOffer)) []byte {
		o := &wire.PeerOffer{Version: offerVersion, Pool: "phys", Address: "10.0.0.1:9700", AuthorityDigest: sum[:]}
		change(o)
		b, err := proto.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := text(func(*wire.PeerOffer) {})
	authority, signature := host.ca.Certificate().Raw, host.ca.Sign(offerPurpose, good)
	if o, err := parseOffer(authority, good, signature); err != nil || o.GetPool() != "phys" {
		t.Fatalf("got %v, %v", o, err)
	}
	moved := text(func(o *wire.PeerOffer) { o.Address = "10.9.9.9:9700" })
	if _, err := parseOffer(authority, moved, signature); !errors.Is(err, roost.Unauthenticated) {
		t.Errorf("another address: %v", err)
	}
	if _, err := parseOffer(other.ca.Certificate().Raw, good, other.ca.Sign(offerPurpose, good)); !errors.Is(err,
		roost.Invalid) {
		t.Errorf("signed by another authority: %v", err)
	}
	if _, err := parseOffer(authority, good, host.ca.Sign(voucherPurpose, good)); !errors.Is(err,
		roost.Unauthenticated) {
		t.Errorf("signed for another purpose: %v", err)
	}
	newer := text(func(o *wire.PeerOffer) { o.Version++ })
	if _, err := parseOffer(authority, newer, host.ca.Sign(offerPurpose, newer)); err == nil ||
		!strings.Contains(err.Error(), "version 2") {
		t.Errorf("a newer version: %v", err)
	}
}

// TestGuestCertificates checks what a guest's certificate says, and that only the
// authority of the guest can have one made.
func TestGuestCertificates(t *testing.T) {
	host, guest, other := newPeerStore(t, "phys"), newPeerStore(t, "chemistry"), newPeerStore(t, "thieves")
	r := flockOf(t, host, guest)
	csr := request(t)
	public, err := pki.ParseRequest(csr)
	if err != nil {
		t.Fatal(err)
	}
	voucher, signature, err := guest.vouch(r, "sub1", public, noon)
	if err != nil {
		t.Fatal(err)
	}
	got, err := host.certifyGuest("chem", voucher, signature, public, "10.1.0.2", noon)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(got.DER)
	if err != nil {
		t.Fatal(err)
	}
	units := leaf.Subject.OrganizationalUnit
	if leaf.Subject.CommonName != "sub1.chem" || rpc.GuestPool(leaf) != "chem" || len(units) != 1 ||
		units[0] != "guest" {
		t.Errorf("it is of %q, of the pool %q, for %v", leaf.Subject.CommonName, rpc.GuestPool(leaf), units)
	}
	if left := leaf.NotAfter.Sub(noon); left > 25*time.Hour || left < 23*time.Hour {
		t.Errorf("it is valid for %v", left)
	}
	signedBy := func(s *certStore, v *wire.GuestVoucher) ([]byte, []byte) {
		b, err := proto.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b, s.ca.Sign(voucherPurpose, b)
	}
	sum := Fingerprint(host.ca.Certificate())
	valid := func(change func(*wire.GuestVoucher)) *wire.GuestVoucher {
		v := &wire.GuestVoucher{Host: sum[:], Schedd: "sub1", Key: public, Expires: noon.Add(time.Minute).UnixNano()}
		change(v)
		return v
	}
	otherKey, err := pki.ParseRequest(request(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		as      string
		signer  *certStore
		voucher *wire.GuestVoucher
	}{
		"another authority":  {"chem", other, valid(func(*wire.GuestVoucher) {})},
		"the host itself":    {"chem", host, valid(func(*wire.GuestVoucher) {})},
		"another peer":       {"bio", guest, valid(func(*wire.GuestVoucher) {})},
		"another host":       {"chem", guest, valid(func(v *wire.GuestVoucher) { v.Host = make([]byte, 32) })},
		"another key":        {"chem", guest, valid(func(v *wire.GuestVoucher) { v.Key = otherKey })},
		"too old":            {"chem", guest, valid(func(v *wire.GuestVoucher) { v.Expires = noon.UnixNano() })},
		"good for ever":      {"chem", guest, valid(func(v *wire.GuestVoucher) { v.Expires = 1 << 62 })},
		"a name with a zero": {"chem", guest, valid(func(v *wire.GuestVoucher) { v.Schedd = "a\x00b" })},
		"no name":            {"chem", guest, valid(func(v *wire.GuestVoucher) { v.Schedd = "" })},
	} {
		b, signature := signedBy(tt.signer, tt.voucher)
		if got, err := host.certifyGuest(tt.as, b, signature, public, "x", noon); err == nil {
			t.Errorf("%s: got a certificate of %s", name, got.Name)
		}
	}
	list, err := host.listPeers(noon)
	if err != nil || len(list) != 1 || len(list[0].GetSchedds()) != 1 || list[0].GetPool() != "chemistry" {
		t.Errorf("peers: %v, %v", list, err)
	}
}

// TestRevokedPeer checks that the certificates of a guest end with the agreement, and
// those of others do not.
func TestRevokedPeer(t *testing.T) {
	host, guest := newPeerStore(t, "phys"), newPeerStore(t, "chemistry")
	r := flockOf(t, host, guest)
	public, err := pki.ParseRequest(request(t))
	if err != nil {
		t.Fatal(err)
	}
	ask := func() (*certRecord, error) {
		voucher, signature, err := guest.vouch(r, "sub1", public, noon)
		if err != nil {
			t.Fatal(err)
		}
		return host.certifyGuest("chem", voucher, signature, public, "x", noon)
	}
	got, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	local, _, err := host.redeemToken(newJoinRequest(t, newToken(t, host, Server, "", 0), Server, "n1"), noon)
	if err != nil {
		t.Fatal(err)
	}
	// no machine of the host can have a name of a guest
	if _, _, err := host.redeemToken(newJoinRequest(t, newToken(t, host, Server, "", 0), Server, "n2.Chem"),
		noon); !errors.Is(err, roost.Conflict) {
		t.Errorf("a machine with the name of a guest: %v", err)
	}
	if _, changed, err := host.revokePeer("chem", "gone", noon); err != nil || !changed {
		t.Fatalf("revoke: %v, %v", changed, err)
	}
	for record, want := range map[*certRecord]bool{got: true, local: false} {
		leaf, err := x509.ParseCertificate(record.DER)
		if err != nil {
			t.Fatal(err)
		}
		if why, err := host.isRevoked(leaf.SerialNumber); err != nil || (why != nil) != want {
			t.Errorf("%s: revoked: %v, %v", record.Name, why, err)
		}
	}
	if _, err := ask(); !errors.Is(err, roost.PermissionDenied) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a certificate of a revoked peer: %v", err)
	}
	if _, _, err := host.revokePeer("chem", "again", noon); !errors.Is(err, roost.NotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	if _, _, err := guest.revokePeer("phys", "", noon); err != nil {
		t.Error(err)
	}
	if _, err := guest.hostPeer("phys", noon); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("vouching after that: %v", err)
	}
	// the name is free for another agreement
	if _, _, err := host.offerPeer("chem", 0, 0, noon); err != nil {
		t.Error(err)
	}
}
