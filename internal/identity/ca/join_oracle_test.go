package ca

import (
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/identity/pki"
)

func certificate(t testing.TB, der []byte) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serial(t testing.TB, der []byte) string { return certificate(t, der).SerialNumber.Text(16) }

// revokedSerials returns the serial numbers in the list that a node fetches.
func revokedSerials(t testing.TB, s *certStore) (list []string) {
	t.Helper()
	l, err := s.signRevocationList(noon)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := pki.ParseRevocations(l.der, s.ca.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range parsed.RevokedCertificateEntries {
		list = append(list, e.SerialNumber.Text(16))
	}
	slices.Sort(list)
	return list
}

// joinOracle is a naive oracle. It knows the right answer to each request from the rules
// in doc.go only.
type joinOracle struct {
	tokens     map[JoinToken]*expectedToken
	validCerts map[string]string // by name: serial number of the valid certificate
	revoked    []string          // serial numbers
}

type expectedToken struct {
	part    NodePart
	name    string
	expires time.Time
	usedBy  int // number of a machine, from 1
	serial  string
}

// mayJoin reports whether a machine may join with a token now.
func (l *joinOracle) mayJoin(token JoinToken, machine int, part NodePart, name string, now time.Time) bool {
	t := l.tokens[token]
	switch {
	case t == nil || !now.Before(t.expires):
		return false
	case t.usedBy != 0:
		return t.usedBy == machine && !slices.Contains(l.revoked, t.serial)
	case part != t.part, t.name != "" && name != t.name:
		return false
	}
	return t.name != "" || l.validCerts[name] == ""
}

// TestRandomJoins lets machines join, join again, and be revoked at random, and compares
// every answer with the oracle.
func TestRandomJoins(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newStore(t)
		l := &joinOracle{tokens: map[JoinToken]*expectedToken{}, validCerts: map[string]string{}}
		var tokens []JoinToken
		machines := make([]joinRequest, 5)
		for i := range machines {
			machines[i] = newJoinRequest(t, JoinToken{}, "", "")
		}
		now := noon
		for step := range 120 {
			now = now.Add(time.Duration(r.IntN(600)) * time.Second)
			name := fmt.Sprintf("n%d", r.IntN(4))
			switch r.IntN(6) {
			case 0, 1:
				p := &expectedToken{part: Parts()[r.IntN(2)], expires: now.Add(30 * time.Minute)}
				if r.IntN(2) == 0 {
					p.name = name
				}
				token, _, err := s.createToken(p.part, p.name, 30*time.Minute, now)
				if err != nil {
					t.Fatal(err)
				}
				l.tokens[token], tokens = p, append(tokens, token)
			case 2:
				n, err := s.revokeNode(name, "", now)
				if (err == nil) != (l.validCerts[name] != "") || n > 1 {
					t.Fatalf("seed %d, step %d: revoked %s: got %d, %v; it had %q", seed, step, name, n,
						err, l.validCerts[name])
				}
				if l.validCerts[name] != "" {
					l.revoked = append(l.revoked, l.validCerts[name])
					l.validCerts[name] = ""
				}
			default:
				if len(tokens) == 0 {
					continue
				}
				token, m, part := tokens[len(tokens)-1-r.IntN(min(len(tokens), 3))], r.IntN(len(machines)),
					Parts()[r.IntN(2)]
				a := machines[m]
				a.secret, a.part, a.name = token.Secret[:], part, name
				want := l.mayJoin(token, m+1, part, name, now)
				got, _, err := s.redeemToken(a, now)
				if (err == nil) != want {
					t.Fatalf("seed %d, step %d: machine %d as %s %s with %+v: got %v, want %v", seed, step, m, part,
						name, *l.tokens[token], err, want)
				}
				if err == nil {
					l.recordJoin(token, m+1, name, serial(t, got.DER))
				}
			}
			slices.Sort(l.revoked)
			if got := revokedSerials(t, s); !slices.Equal(got, l.revoked) {
				t.Fatalf("seed %d, step %d: the list has %v, want %v", seed, step, got, l.revoked)
			}
		}
	}
}

func (l *joinOracle) recordJoin(token JoinToken, machine int, name, serial string) {
	t := l.tokens[token]
	if t.usedBy != 0 {
		return // an answer that was lost
	}
	if l.validCerts[name] != "" {
		l.revoked = append(l.revoked, l.validCerts[name])
	}
	t.usedBy, t.serial, l.validCerts[name] = machine, serial, serial
}
