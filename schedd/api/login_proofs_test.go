package api

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/proof"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

func newTestIssuer(t *testing.T) *loginIssuer {
	t.Helper()
	store, err := login.Open(t.TempDir(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	proofs, err := proof.NewVerifier(&config.WebSettings{URL: "https://roost.example.org"}, proof.Programs{})
	if err != nil {
		t.Fatal(err)
	}
	return &loginIssuer{node: "n1", log: slog.New(slog.DiscardHandler), logins: store, proofs: proofs,
		checkUser: func(queue.CallerIdentity) error { return nil }}
}

// callFrom returns the context of a call over a socket or from an address.
func callFrom(address string) context.Context {
	var addr net.Addr = &net.UnixAddr{Net: "unix", Name: "@"}
	if address != "" {
		addr = &net.TCPAddr{IP: net.ParseIP(address), Port: 1234}
	}
	return grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{Addr: addr})
}

// TestPersonalAccounts refuses accounts that do not log in by a provider or a password.
func TestPersonalAccounts(t *testing.T) {
	s := newTestIssuer(t)
	for name, want := range map[string]string{"root": "account of the system", "nobody": "account of the system",
		"daemon": "account of the system", "no-such-account": "there is no account", "0": "there is no account",
		"": "there is no account"} {
		if who, err := s.personalAccount(name); !errors.Is(err, roost.PermissionDenied) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v", name, who, err)
		}
	}
	if s.checkNotSystem("root") == nil || s.checkNotSystem("no-such-account") != nil {
		t.Error("a password of root is asked for, or one that nobody has is not")
	}
}

// TestW10LinkLife asks for links that last. A link to the pages is good for a minute,
// whatever the caller asks for.
func TestW10LinkLife(t *testing.T) {
	for _, c := range []struct {
		ask  time.Duration
		web  bool
		want time.Duration
	}{
		{0, true, time.Minute}, {24 * time.Hour, true, time.Minute}, {30 * time.Second, true, 30 * time.Second},
		{-1, true, -1}, // which the store refuses
		{0, false, time.Hour}, {24 * time.Hour, false, 24 * time.Hour},
	} {
		if got := tokenLife(&wire.LoginTokenRequest{Life: int64(c.ask), Web: c.web}); got != c.want {
			t.Errorf("%v, web %t: got %v, want %v", c.ask, c.web, got, c.want)
		}
	}
}

// derived makes the proof of a login, which a test may change before it signs.
type derived struct {
	key       ed25519.PrivateKey
	der       []byte
	host      string
	challenge []byte
}

func (d *derived) proof() *wire.LoginRequest {
	return &wire.LoginRequest{From: "192.0.2.1", Derived: &wire.DerivedProof{Certificate: d.der, Ticket: d.challenge,
		Host: d.host, Signature: ed25519.Sign(d.key, proof.Statement(d.host, d.challenge))}}
}

// TestDerivedLogins makes logins of logins: for this host, once, while the first is
// valid.
func TestDerivedLogins(t *testing.T) {
	s := newTestIssuer(t)
	challenge := func() []byte {
		reply, err := s.begin(callFrom(""), &wire.BeginLoginRequest{})
		if err != nil || reply.GetNode() != "n1" {
			t.Fatalf("%v %v", reply, err)
		}
		return reply.GetTicket()
	}
	user := login.HostAccount{User: "ann", UID: 1000, GID: 1000}
	issue := func(store *login.Store) (ed25519.PrivateKey, []byte, login.Login) {
		public, key, _ := ed25519.GenerateKey(rand.Reader)
		der, l, err := store.Issue(user, public, "there", time.Hour, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return key, der, l
	}
	key, der, parent := issue(s.logins)
	foreign, err := login.Open(t.TempDir(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	foreignKey, foreignDER, _ := issue(foreign)
	public, own, _ := ed25519.GenerateKey(rand.Reader)
	good := &derived{key, der, "roost.example.org", challenge()}
	made, err := s.loginByProof(callFrom(""), good.proof(), public)
	if err != nil || made.login.User != "ann" || made.login.Parent != parent.Serial ||
		made.login.Expires.After(parent.Expires.Add(time.Second)) {
		t.Fatalf("got %+v, %v", made.login, err)
	}
	const host = "roost.example.org"
	for name, c := range map[string]struct {
		of       *derived
		at, want string
	}{
		"again":           {good, "", "used already"},
		"another host":    {&derived{key, der, "evil.example", challenge()}, "", "for the host"},
		"another key":     {&derived{own, der, host, challenge()}, "", "signature"},
		"a foreign login": {&derived{foreignKey, foreignDER, host, challenge()}, "", "authenticated"},
		"no challenge":    {&derived{key, der, host, make([]byte, 200)}, "", "not begun here"},
		"from elsewhere":  {&derived{key, der, host, challenge()}, "192.0.2.9", "for the web daemon"},
		"of such a login": {&derived{own, made.der, host, challenge()}, "", "makes no others"},
	} {
		got, err := s.loginByProof(callFrom(c.at), c.of.proof(), public)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %+v, %v", name, got.login, err)
		}
	}
	// it ends with the one that has signed
	if _, err := s.logins.Account(made.login.Serial, time.Now()); err != nil {
		t.Errorf("before: %v", err)
	}
	all := func(login.HostAccount) bool { return true }
	if _, err := s.logins.Revoke(parent.Serial, all, time.Now()); err != nil {
		t.Fatal(err)
	}
	leaf, _ := x509.ParseCertificate(made.der)
	if err := s.logins.CheckCertificate(leaf); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("after: %v", err)
	}
	revoked := &derived{key, der, "roost.example.org", challenge()}
	if _, err := s.loginByProof(callFrom(""), revoked.proof(), public); err == nil ||
		!strings.Contains(err.Error(), "revoked") {
		t.Errorf("a revoked login: %v", err)
	}
}
