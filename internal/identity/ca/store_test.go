package ca

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// noon is the start time of the tests. Certificates get the host's clock, which is close.
var noon = time.Now()

func newStore(t testing.TB) *certStore {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "authority")
	if err := pki.Init(dir, "lab"); err != nil {
		t.Fatal(err)
	}
	return reopen(t, dir)
}

func reopen(t testing.TB, dir string) *certStore {
	t.Helper()
	s, err := openStore(dir, "central")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

// request returns the certificate request of a new machine.
func request(t testing.TB) []byte {
	t.Helper()
	der, err := pki.Request(filepath.Join(t.TempDir(), "node.key"))
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func newJoinRequest(t testing.TB, token JoinToken, part NodePart, name string) joinRequest {
	t.Helper()
	public, err := pki.ParseRequest(request(t))
	if err != nil {
		t.Fatal(err)
	}
	return joinRequest{secret: token.Secret[:], part: part, name: name, publicKey: public, fromHost: "10.0.0.9"}
}

func newToken(t testing.TB, s *certStore, part NodePart, name string, life time.Duration) JoinToken {
	t.Helper()
	token, _, err := s.createToken(part, name, life, noon)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestATokenLetsOneMachineIn(t *testing.T) {
	s := newStore(t)
	token := newToken(t, s, Desktop, "", 0)
	a := newJoinRequest(t, token, Desktop, "d1")
	first, _, err := s.redeemToken(a, noon)
	if err != nil {
		t.Fatal(err)
	}
	if first.Name != "d1" || first.Part != Desktop || strings.Join(first.Roles, " ") != "schedd startd" {
		t.Errorf("got %+v", first)
	}
	again, _, err := s.redeemToken(a, noon.Add(59*time.Minute))
	if err != nil || !bytes.Equal(again.DER, first.DER) {
		t.Errorf("a lost answer: got another certificate, %v", err)
	}
	if _, _, err := s.redeemToken(a, noon.Add(time.Hour)); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a lost answer, too late: got %v", err)
	}
	other := newJoinRequest(t, token, Desktop, "d2")
	if _, _, err := s.redeemToken(other, noon); !errors.Is(err, roost.PermissionDenied) ||
		!strings.Contains(err.Error(), "used already") || !strings.Contains(err.Error(), "d1 from 10.0.0.9") {
		t.Errorf("another machine: got %v", err)
	}
	// The token stays used when the daemon is restarted.
	s.close()
	s = reopen(t, s.dir)
	if _, _, err := s.redeemToken(other, noon); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("another machine after a restart: got %v", err)
	}
	if again, _, err := s.redeemToken(a, noon); err != nil || !bytes.Equal(again.DER, first.DER) {
		t.Errorf("a lost answer after a restart: got %v", err)
	}
}

func TestRefusalsSayWhy(t *testing.T) {
	s := newStore(t)
	server, bound, old := newToken(t, s, Server, "", 0), newToken(t, s, Server, "n7", 0),
		newToken(t, s, Server, "", time.Minute)
	if _, _, err := s.redeemToken(newJoinRequest(t, newToken(t, s, Server, "", 0), "", "taken"), noon); err != nil {
		t.Fatal(err)
	}
	manual, err := pki.IssueTo(s.dir, "handmade", []peer.Role{peer.Startd})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		a    joinRequest
		at   time.Time
		kind roost.ErrorKind
		says string
	}{
		{"no such token", newJoinRequest(t, NewToken(s.ca.Certificate()), "", "n1"), noon, roost.PermissionDenied,
			"knows no such token"},
		{"too late", newJoinRequest(t, old, "", "n1"), noon.Add(time.Minute), roost.PermissionDenied, "ran out"},
		{"another part", newJoinRequest(t, server, Desktop, "n1"), noon, roost.PermissionDenied,
			"roost token --desktop"},
		{"a name that is taken", newJoinRequest(t, server, "", "taken"), noon, roost.Conflict,
			"roost token --server --for taken"},
		{"a name that was given by hand", newJoinRequest(t, server, "", "handmade"), noon, roost.Conflict, "joined"},
		{"a name in other letters", newJoinRequest(t, server, "", "Taken"), noon, roost.Conflict, "taken is a member"},
		{"one by hand in other letters", newJoinRequest(t, server, "", "HANDmade"), noon, roost.Conflict,
			"handmade is a member"},
		{"the authority's in other letters", newJoinRequest(t, server, "", "Central"), noon, roost.Conflict,
			"the machine with the authority"},
		{"another's token in other letters", newJoinRequest(t, bound, "", "N7"), noon, roost.PermissionDenied,
			"--name n7"},
		{"the authority's files in other letters", newJoinRequest(t, server, "", "CA"), noon, roost.Invalid,
			"cannot be a node's name"},
		{"another's token", newJoinRequest(t, bound, "", "n8"), noon, roost.PermissionDenied, "--name n7"},
		{"the authority's name", newJoinRequest(t, server, "", "central"), noon, roost.Conflict,
			"the machine with the authority"},
		{"no name", newJoinRequest(t, server, "", ""), noon, roost.Invalid, "--name"},
		{"a name that is a path", newJoinRequest(t, server, "", "../n1"), noon, roost.Invalid,
			"cannot be a node's name"},
		{"the authority's files", newJoinRequest(t, server, "", "ca"), noon, roost.Invalid, "cannot be a node's name"},
	}
	for _, tt := range tests {
		if _, _, err := s.redeemToken(tt.a, tt.at); !errors.Is(err, tt.kind) ||
			!strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %v with %q", tt.name, err, tt.kind, tt.says)
		}
	}
	// None of these attempts has used the tokens.
	for _, token := range []JoinToken{server, bound} {
		if _, _, err := s.redeemToken(newJoinRequest(t, token,
			"", map[bool]string{true: "n7", false: "n1"}[token == bound]), noon); err != nil {
			t.Errorf("afterwards: got %v", err)
		}
	}
	if _, err := os.Stat(manual.Certificate); err != nil {
		t.Error(err)
	}
}

func TestUnusableTokenRefused(t *testing.T) {
	s := newStore(t)
	for _, tt := range []struct {
		part NodePart
		name string
		life time.Duration
	}{{"", "", 0}, {"authority", "", 0}, {Server, "a b", 0}, {Server, "central", 0}, {Server, "", time.Second},
		{Server, "", maxTokenLife + 1}, {Server, "", -1}} {
		if _, _, err := s.createToken(tt.part, tt.name, tt.life, noon); !errors.Is(err, roost.Invalid) {
			t.Errorf("%+v: got %v", tt, err)
		}
	}
}

// TestRejoinRevokesPrevious checks a machine that joins again with a token for its name.
// It replaces itself: its earlier certificates are revoked.
func TestRejoinRevokesPrevious(t *testing.T) {
	s := newStore(t)
	first, _, err := s.redeemToken(newJoinRequest(t, newToken(t, s, Server, "", 0), "", "n1"), noon)
	if err != nil {
		t.Fatal(err)
	}
	second, replaced, err := s.redeemToken(newJoinRequest(t, newToken(t, s, Server, "n1", 0), "", ""), noon)
	if err != nil || !replaced || second.Name != "n1" {
		t.Fatalf("got %+v, %v, %v", second, replaced, err)
	}
	if got := revokedSerials(t, s); len(got) != 1 || got[0] != serial(t, first.DER) {
		t.Errorf("got %v, want %s", got, serial(t, first.DER))
	}
}

// TestNamesInOtherLetters checks names that differ only by case. Such a name is free when
// its member has left, by revocation or expiry; the node that takes it then excludes the
// other.
func TestNamesInOtherLetters(t *testing.T) {
	s := newStore(t)
	join := func(name string, at time.Time) error {
		_, _, err := s.redeemToken(newJoinRequest(t, newToken(t, s, Server, "", 30*24*time.Hour), "", name), at)
		return err
	}
	for _, step := range []struct {
		name string
		at   time.Time
		want error
	}{{"n1", noon, nil}, {"N1", noon, roost.Conflict}, {"n10", noon, nil}, {"N-1", noon, nil}} {
		if err := join(step.name, step.at); !errors.Is(err, step.want) {
			t.Errorf("%s: %v, want %v", step.name, err, step.want)
		}
	}
	if _, err := s.revokeNode("n1", "stolen", noon); err != nil {
		t.Fatal(err)
	}
	if err := join("N1", noon); err != nil {
		t.Errorf("n1 was revoked, and N1 joins: %v", err)
	}
	if err := join("n1", noon); !errors.Is(err, roost.Conflict) {
		t.Errorf("n1 joins again: %v", err)
	}
	later := noon.Add(CertValidity + time.Hour)
	token, _, err := s.createToken(Server, "", time.Hour, later)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.redeemToken(newJoinRequest(t, token, "", "N10"), later); err != nil {
		t.Errorf("the certificate of n10 has ended, and N10 joins: %v", err)
	}
	if _, err := pki.IssueTo(s.dir, "byhand", []peer.Role{peer.Startd}); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.IssueTo(s.dir, "ByHand", []peer.Role{peer.Startd}); !errors.Is(err, roost.Conflict) {
		t.Errorf("two certificates by hand: %v", err)
	}
	if _, err := pki.IssueTo(s.dir, "byhand", []peer.Role{peer.Startd}); err != nil {
		t.Errorf("a new one for the same node: %v", err)
	}
}

func TestRevocation(t *testing.T) {
	s := newStore(t)
	got, _, err := s.redeemToken(newJoinRequest(t, newToken(t, s, Server, "", 0), "", "n1"), noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pki.IssueTo(s.dir, "handmade", []peer.Role{peer.Startd}); err != nil {
		t.Fatal(err)
	}
	before, err := s.signRevocationList(noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"n1", "handmade"} {
		if n, err := s.revokeNode(name, "stolen", noon); n != 1 || err != nil {
			t.Errorf("%s: got %d, %v", name, n, err)
		}
		if _, err := s.revokeNode(name, "stolen", noon); !errors.Is(err, roost.NotFound) {
			t.Errorf("%s twice: got %v", name, err)
		}
	}
	for name, kind := range map[string]roost.ErrorKind{"nobody": roost.NotFound, "central": roost.Invalid,
		"../x": roost.Invalid} {
		if _, err := s.revokeNode(name, "", noon); !errors.Is(err, kind) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if got := revokedSerials(t, s); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	after, err := s.signRevocationList(noon)
	if err != nil || after.number <= before.number {
		t.Errorf("list %d comes after %d, %v", after.number, before.number, err)
	}
	// A list of another pool is invalid.
	if _, err := pki.ParseRevocations(after.der, newStore(t).ca.Certificate()); !errors.Is(err, roost.BadConfig) {
		t.Errorf("a foreign list: got %v", err)
	}
	// Its name is free, and its own certificate renews nothing.
	leaf := certificate(t, got.DER)
	if _, err := s.renewCert(nodeMember{name: "n1", roles: rolesOf(got.Roles), serial: leaf.SerialNumber},
		newJoinRequest(t, JoinToken{}, "", "").publicKey, noon); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a revoked node renews: got %v", err)
	}
	if _, _, err := s.redeemToken(newJoinRequest(t, newToken(t, s, Server, "", 0), "", "n1"), noon); err != nil {
		t.Errorf("the name afterwards: got %v", err)
	}
}

func TestRenewal(t *testing.T) {
	s := newStore(t)
	a := newJoinRequest(t, newToken(t, s, Desktop, "", 0), "", "d1")
	joined, _, err := s.redeemToken(a, noon)
	if err != nil {
		t.Fatal(err)
	}
	m := nodeMember{name: "d1", roles: rolesOf(joined.Roles), serial: certificate(t, joined.DER).SerialNumber}
	later := noon.Add(CertValidity * 2 / 3)
	next, err := s.renewCert(m, a.publicKey, later)
	if err != nil {
		t.Fatal(err)
	}
	if next.Name != "d1" || next.Part != Desktop || next.Joined != joined.Joined || bytes.Equal(next.DER, joined.DER) {
		t.Errorf("got %+v", next)
	}
	if again, err := s.renewCert(m, a.publicKey, later.Add(time.Minute)); err != nil ||
		!bytes.Equal(again.DER, next.DER) {
		t.Errorf("a lost answer: got another certificate, %v", err)
	}
	for range maxValidCerts + 1 {
		_, err = s.renewCert(m, newJoinRequest(t, JoinToken{}, "", "").publicKey, later)
	}
	if !errors.Is(err, roost.Exhausted) {
		t.Errorf("without end: got %v", err)
	}
}

func TestExpiredRecordsDropped(t *testing.T) {
	s := newStore(t)
	token := newToken(t, s, Server, "", 0)
	if _, _, err := s.redeemToken(newJoinRequest(t, token, "", "n1"), noon); err != nil {
		t.Fatal(err)
	}
	if _, err := s.revokeNode("n1", "", noon); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		after           time.Duration
		tokens, members int
	}{{time.Hour + tokenRetention - time.Minute, 1, 1}, {time.Hour + tokenRetention + time.Minute, 0, 1},
		{CertValidity + certRetention + 2*time.Minute, 0, 0}} {
		if err := s.dropExpired(noon.Add(tt.after)); err != nil {
			t.Fatal(err)
		}
		tokens, err := s.listTokens()
		members, merr := s.listMembers()
		if err != nil || merr != nil || len(tokens) != tt.tokens || len(members) != tt.members ||
			len(revokedSerials(t, s)) != tt.members {
			t.Errorf("after %v: got %v, %v", tt.after, tokens, members)
		}
	}
	s.db.View(func(tx *boltfile.Tx) error {
		if n := tx.Bucket(namesBucket).Len(); n != 0 {
			t.Errorf("%d names are left", n)
		}
		return nil
	})
}

func TestTokenRemoval(t *testing.T) {
	s := newStore(t)
	token := newToken(t, s, Server, "", 0)
	id := tokenID(digest(token.Secret[:]))
	for given, kind := range map[string]roost.ErrorKind{"": roost.Invalid, "xyz!": roost.Invalid, id[:3]: roost.Invalid,
		"00" + id[:10]: roost.NotFound} {
		if _, err := s.removeToken(given); !errors.Is(err, kind) {
			t.Errorf("%q: got %v", given, err)
		}
	}
	if info, err := s.removeToken(id[:5]); err != nil || info.GetId() != id {
		t.Errorf("got %v, %v", info, err)
	}
	if _, _, err := s.redeemToken(newJoinRequest(t, token, "", "n1"), noon); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("afterwards: got %v", err)
	}
}

func TestTokenText(t *testing.T) {
	token := NewToken(newStore(t).ca.Certificate())
	text := token.String()
	if got, err := ParseToken(text); err != nil || got != token {
		t.Errorf("got %v, %v", got, err)
	}
	for range 200 { // changes any one letter
		b := []byte(text)
		b[rand.IntN(len(b))] = "abcdefghijklmnopqrstuvwxyz0123456789"[rand.IntN(36)]
		if _, err := ParseToken(string(b)); string(b) != text &&
			(!errors.Is(err, roost.Usage) || strings.Contains(err.Error(), string(b))) {
			t.Errorf("%s: got %v", b, err)
		}
	}
	for _, given := range []string{"", text[:len(text)-1], text + "A", text[3:]} {
		if _, err := ParseToken(given); !errors.Is(err, roost.Usage) {
			t.Errorf("%q: got %v", given, err)
		}
	}
}
