package login

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/loginfile"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func key(t *testing.T) ed25519.PublicKey {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func open(t *testing.T, dir string) *Store {
	k, err := Open(dir, "n2")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var oneHour = TokenLifetimes{Token: time.Hour, Login: LoginValidity}

var ann = HostAccount{"ann", 1000, 1000}

// TestTokens checks that a token can be used once and until it expires. A lost answer
// must do no harm, and everything must survive a restart.
func TestTokens(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	mine, thiefs := key(t), key(t)
	token, expires, err := k.MakeToken(ann, oneHour, noon)
	if err != nil || expires != noon.Add(time.Hour) {
		t.Fatal(expires, err)
	}
	if back, err := ParseToken(token.String()); err != nil || back != token {
		t.Errorf("read back: %v, %v", back, err)
	}
	late := func(t time.Time) time.Time { return t.Add(time.Hour + time.Second) }
	if _, _, err := k.Redeem(token.Secret[:], mine, "x", late(noon)); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a token that ran out: %v", err)
	}
	if _, _, err := k.Redeem(make([]byte, secretSize), mine, "x", noon); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a wrong token: %v", err)
	}
	der, l, err := k.Redeem(token.Secret[:], mine, "10.0.0.9", noon)
	if err != nil || l.HostAccount != ann || l.From != "10.0.0.9" {
		t.Fatal(l, err)
	}
	k = open(t, dir)
	again, same, err := k.Redeem(token.Secret[:], mine, "10.0.0.9", noon)
	if err != nil || string(again) != string(der) || same.Serial != l.Serial {
		t.Errorf("the same key again: %v, %v", same, err)
	}
	if _, _, err := k.Redeem(token.Secret[:], thiefs, "10.0.0.66", noon); !errors.Is(err, roost.PermissionDenied) ||
		!strings.Contains(err.Error(), "used already") {
		t.Errorf("another key: %v", err)
	}
	if n := len(k.List(func(HostAccount) bool { return true })); n != 1 {
		t.Errorf("there are %d logins", n)
	}
}

func TestRevoke(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	token, _, _ := k.MakeToken(ann, oneHour, noon)
	_, l, err := k.Redeem(token.Secret[:], key(t), "x", noon)
	if err != nil {
		t.Fatal(err)
	}
	anns, bobs := func(a HostAccount) bool {
		return a.UID == ann.UID
	}, func(a HostAccount) bool { return a.UID == 1001 }
	if who, err := k.Account(l.Serial, noon); err != nil || who != ann {
		t.Errorf("got %v, %v", who, err)
	}
	if _, err := k.Account(l.Serial, noon.Add(10*365*24*time.Hour)); !errors.Is(err, roost.Unauthenticated) {
		t.Errorf("when it has ended: %v", err)
	}
	for _, id := range []string{"", l.Serial[:3], "zzzz"} {
		if _, err := k.Revoke(id, anns, noon); !errors.Is(err, roost.NotFound) {
			t.Errorf("revoke %q: %v", id, err)
		}
	}
	if _, err := k.Revoke(l.ID(), bobs, noon); !errors.Is(err, roost.NotFound) || len(k.List(bobs)) != 0 {
		t.Errorf("bob revokes it: %v", err)
	}
	if _, err := k.Revoke(l.ID(), anns, noon); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, dir).Account(l.Serial, noon); !errors.Is(err, roost.Unauthenticated) ||
		!strings.Contains(err.Error(), "revoked") {
		t.Errorf("when it is revoked: %v", err)
	}
}

// TestBounds checks how many tokens and logins one user can have.
func TestBounds(t *testing.T) {
	k := open(t, t.TempDir())
	var last LoginToken
	var err error
	for i := 0; err == nil; i++ {
		if last, _, err = k.MakeToken(ann, oneHour, noon); err == nil && i >= maxTokens {
			t.Fatal("there is no end of them")
		}
	}
	if !errors.Is(err, roost.Exhausted) {
		t.Error(err)
	}
	if _, _, err := k.MakeToken(HostAccount{"bob", 1001, 1001}, oneHour, noon); err != nil {
		t.Errorf("bob is kept from his by ann's: %v", err)
	}
	tooLong := TokenLifetimes{25 * time.Hour, LoginValidity}
	if _, _, err := k.MakeToken(ann, tooLong, noon); !errors.Is(err, roost.Invalid) {
		t.Errorf("one for long: %v (%v)", err, last)
	}
}

// loginServer answers a schedd's calls for logins.
type loginServer struct {
	wire.UnimplementedScheddServer
	store *Store
	peers chan peer.Peer
}

func (c *loginServer) Login(_ context.Context, req *wire.LoginRequest) (*wire.LoginReply, error) {
	public, err := pki.ParseRequest(req.GetRequest())
	if err != nil {
		return nil, err
	}
	der, l, err := c.store.Redeem(req.GetSecret(), public, "x", time.Now())
	return &wire.LoginReply{Certificate: der, User: l.User, Node: "n2"}, err
}

func (c *loginServer) Health(ctx context.Context, _ *wire.HealthRequest) (*wire.HealthReply, error) {
	p, _ := peer.FromContext(ctx)
	c.peers <- p
	return &wire.HealthReply{}, nil
}

// startLoginServer serves at a port with a node's identity of a pool and the users'
// identity of a store.
func startLoginServer(t *testing.T, pool string, k *Store) (addr string, c *loginServer) {
	files, err := pki.IssueTo(pool, "n2", []peer.Role{peer.Schedd})
	if err != nil {
		t.Fatal(err)
	}
	id, err := pki.Load(&files)
	if err == nil {
		id, err = k.Identity(id)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c = &loginServer{store: k, peers: make(chan peer.Peer, 10)}
	s := rpc.NewServer(id, peer.MethodAccess())
	wire.RegisterScheddServer(s, c)
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return l.Addr().String(), c
}

func dial(t *testing.T, addr string, id *rpc.Identity) wire.ScheddClient {
	conn, err := rpc.DialNode(addr, id, peer.Schedd, "n2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return wire.NewScheddClient(conn)
}

// redeem logs in with a token.
func redeem(t *testing.T, addr string, token LoginToken) (*LoginEntry, error) {
	t.Helper()
	g, err := NewRequest(token)
	if err != nil {
		t.Fatal(err)
	}
	request, err := g.CertRequest()
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, addr, g.Identity)
	if _, err := client.Health(t.Context(), &wire.HealthRequest{}); !errors.Is(rpc.FromStatus(err),
		roost.PermissionDenied) && !errors.Is(rpc.FromStatus(err), roost.Unavailable) {
		t.Errorf("who has no certificate asks for something else: %v", err)
	}
	reply, err := client.Login(t.Context(), &wire.LoginRequest{Secret: token.Secret[:], Request: request})
	if err != nil {
		return nil, rpc.FromStatus(err)
	}
	e, err := g.Entry(t.Context(), reply.GetNode(), addr, reply.GetUser(), reply.GetCertificate())
	if err != nil {
		t.Fatal(err)
	}
	return e, nil
}

// TestLogin logs a user in over TLS, and checks afterwards which side accepts which
// certificate.
func TestLogin(t *testing.T) {
	pool := filepath.Join(t.TempDir(), "ca")
	if err := pki.Init(pool, "lab"); err != nil {
		t.Fatal(err)
	}
	k, other := open(t, t.TempDir()), open(t, t.TempDir())
	addr, c := startLoginServer(t, pool, k)
	elsewhere, _ := startLoginServer(t, pool, other)

	token, _, err := k.MakeToken(ann, oneHour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := redeem(t, elsewhere, token); !errors.Is(err, roost.Unavailable) ||
		!strings.Contains(err.Error(), "not the schedd that made the token") {
		t.Errorf("at another schedd: %v", err)
	}
	e, err := redeem(t, addr, token)
	if err != nil || e.User != "ann" || e.Node != "n2" {
		t.Fatal(e, err)
	}
	if _, err := redeem(t, addr, token); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("twice: %v", err)
	}

	dir := filepath.Join(t.TempDir(), "logins")
	if err := e.Save(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "n2.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if e, err = Load(dir, "n2"); err != nil || len(loginfile.Nodes(dir)) != 1 {
		t.Fatal(err)
	}
	id, err := e.Identity()
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, addr, id)
	if _, err := client.Health(t.Context(), &wire.HealthRequest{}); err != nil {
		t.Fatal(err)
	}
	p := <-c.peers
	if who, err := k.Account(p.Serial, time.Now()); err != nil || who != ann || p.User != "ann" || p.Local ||
		len(p.Certified) > 0 {
		t.Errorf("it is %+v: %v, %v", p, who, err)
	}
	for _, role := range append(peer.DaemonRoles(), peer.Anonymous) {
		if p.Plays(role) {
			t.Errorf("a user plays %s", role)
		}
	}
	if _, err := dial(t, elsewhere, id).Health(t.Context(), &wire.HealthRequest{}); !errors.Is(rpc.FromStatus(err),
		roost.Unavailable) {
		t.Errorf("another schedd believes it: %v", err)
	}
	if _, err := k.Revoke(p.Serial, func(HostAccount) bool { return true }, time.Now()); err != nil {
		t.Fatal(err)
	}
	// The connection is closed, even with calls in progress.
	for {
		if _, err := client.Health(t.Context(), &wire.HealthRequest{}); err != nil {
			break
		}
		<-c.peers
	}
}

// TestNodesAreNotUsers checks that a pool certificate identifies a node at the same
// address. It must not identify a user.
func TestNodesAreNotUsers(t *testing.T) {
	pool := filepath.Join(t.TempDir(), "ca")
	if err := pki.Init(pool, "lab"); err != nil {
		t.Fatal(err)
	}
	k := open(t, t.TempDir())
	addr, _ := startLoginServer(t, pool, k)
	files, err := pki.IssueTo(pool, "rogue", peer.DaemonRoles())
	if err != nil {
		t.Fatal(err)
	}
	id, err := pki.Load(&files)
	if err != nil {
		t.Fatal(err)
	}
	_, err = dial(t, addr, id).Health(t.Context(), &wire.HealthRequest{})
	if !errors.Is(rpc.FromStatus(err), roost.PermissionDenied) {
		t.Errorf("a node asks as a user: %v", err)
	}
	asUser := id.TLS()
	asUser.ServerName = ServerName
	asUser.VerifyConnection = nil
	sly := &rpc.Identity{TLS: func() *tls.Config { return asUser.Clone() }}
	if _, err = dial(t, addr, sly).Health(t.Context(), &wire.HealthRequest{}); !errors.Is(rpc.FromStatus(err),
		roost.Unavailable) {
		t.Errorf("a node says that it is a user: %v", err)
	}
}
