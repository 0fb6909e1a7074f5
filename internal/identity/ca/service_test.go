package ca_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/ca"
	"github.com/roost-batch/roost/internal/identity/caclient"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// files returns paths of a machine's key and certificates.
func files(t *testing.T) *config.TLSFiles {
	dir := t.TempDir()
	return &config.TLSFiles{CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "node.pem"),
		Key: filepath.Join(dir, "node.key")}
}

// join lets a machine with these files join.
func join(t *testing.T, r *ca.RunningAuthority, at *config.TLSFiles, token ca.JoinToken,
	part ca.NodePart, name string) (*wire.JoinReply, error) {
	t.Helper()
	door, err := caclient.Connect(t.Context(), r.Addr, token)
	if err != nil {
		return nil, err
	}
	defer door.Close()
	if _, err := door.CheckPool(t.Context()); err != nil {
		return nil, err
	}
	request, err := pki.Request(at.Key)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := door.Join(t.Context(), token, part, "", name, request)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(pki.SaveAuthority(at, door.Authority),
		pki.SaveCertificate(at, reply.GetCertificate())); err != nil {
		t.Fatal(err)
	}
	return reply, nil
}

func identity(t *testing.T, at *config.TLSFiles) *rpc.Identity {
	t.Helper()
	id, err := pki.Load(at)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// clientAs returns a client of the authority with an identity, or the administrator's
// with none.
func clientAs(t *testing.T, addr string, id *rpc.Identity) wire.AuthorityClient {
	t.Helper()
	conn, err := rpc.Dial(addr, id, peer.Authority)
	if strings.HasPrefix(addr, "unix:") {
		conn, err = rpc.Dial(addr, nil, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return wire.NewAuthorityClient(conn)
}

func TestMachineJoinsAndStays(t *testing.T) {
	r := ca.Start(t)
	admin := clientAs(t, r.Socket, nil)
	made, err := admin.MakeToken(t.Context(), &wire.MakeTokenRequest{Part: "desktop"})
	if err != nil {
		t.Fatal(err)
	}
	token, err := ca.ParseToken(made.GetToken())
	if err != nil || made.GetAddress() != r.Addr {
		t.Fatalf("got %v, %v", made, err)
	}
	at := files(t)
	reply, err := join(t, r, at, token, ca.Desktop, "d1")
	if err != nil {
		t.Fatal(err)
	}
	if reply.GetPool() != "lab" || reply.GetName() != "d1" || reply.GetPart() != "desktop" ||
		reply.GetSeen() != "127.0.0.1" || reply.GetCollectors()[0] != "10.0.0.1:9701" ||
		reply.GetAuthority() != r.Addr {
		t.Errorf("got %v", reply)
	}
	id := identity(t, at)
	if id.Name != "d1" || len(id.Roles) != 2 || id.Roles[0] != peer.Schedd || id.Roles[1] != peer.Startd {
		t.Errorf("got %s, %v", id.Name, id.Roles)
	}
	node := clientAs(t, r.Addr, id)
	request, err := pki.Request(at.Key)
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := node.Renew(t.Context(), &wire.RenewRequest{Request: request})
	if err != nil {
		t.Fatal(err)
	}
	if err := pki.SaveCertificate(at, renewed.GetCertificate()); err != nil {
		t.Error(err)
	}
	if id := identity(t, at); id.Name != "d1" || len(id.Roles) != 2 {
		t.Errorf("renewed: got %s, %v", id.Name, id.Roles)
	}
	list, err := node.Revoked(t.Context(), &wire.RevokedRequest{})
	if err != nil || len(list.GetList()) == 0 {
		t.Fatalf("got %v, %v", list, err)
	}
	if _, err := admin.Revoke(t.Context(), &wire.RevokeRequest{Name: "d1", Reason: "stolen"}); err != nil {
		t.Fatal(err)
	}
	// Both certificates are on the list, and the node is refused at once: calls on its
	// connection fail, and a new connection is not accepted.
	_, err = clientAs(t, r.Addr, id).Revoked(t.Context(), &wire.RevokedRequest{})
	if err == nil {
		t.Errorf("a revoked node is still served")
	}
	if _, err := node.Renew(t.Context(), &wire.RenewRequest{Request: request}); !errors.Is(rpc.FromStatus(err),
		roost.PermissionDenied) {
		t.Errorf("a revoked node renews: got %v", err)
	}
	members, err := admin.Members(t.Context(), &wire.MembersRequest{})
	if err != nil || len(members.GetMembers()) != 1 || members.GetMembers()[0].GetReason() != "stolen" ||
		members.GetTokens()[0].GetUsedBy() != "d1" {
		t.Errorf("got %v, %v", members, err)
	}
	for _, word := range []string{`msg="made a token"`, "msg=joined name=d1 part=desktop from=127.0.0.1",
		"msg=renewed name=d1", "msg=revoked name=d1 certificates=2 reason=stolen"} {
		if !strings.Contains(r.Log(), word) {
			t.Errorf("the log does not say %q:\n%s", word, r.Log())
		}
	}
	if strings.Contains(r.Log(), made.GetToken()[:12]) {
		t.Errorf("the log has the token:\n%s", r.Log())
	}
}

// TestTheAuthorityIsTheOneOfTheToken checks that nothing is sent to another authority
// than that of the token.
func TestTheAuthorityIsTheOneOfTheToken(t *testing.T) {
	ours, theirs := ca.Start(t), ca.Start(t)
	if _, err := join(t, theirs, files(t), ours.CreateToken(t, ca.Server, "", 0), "", "n1"); !errors.Is(err,
		roost.Unauthenticated) || !strings.Contains(err.Error(), "not the one that made the token") {
		t.Errorf("got %v", err)
	}
	if log := theirs.Log(); strings.Contains(log, "join") {
		t.Errorf("it was asked:\n%s", log)
	}
	// A server that shows the right certificate of the authority, and itself has only a
	// certificate of a node.
	at := files(t)
	if _, err := join(t, ours, at, ours.CreateToken(t, ca.Server, "", 0), "", "n1"); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(at.Certificate, at.Key)
	if err != nil {
		t.Fatal(err)
	}
	root, err := pki.ReadCertificate(at.CA)
	if err != nil {
		t.Fatal(err)
	}
	pair.Certificate = append(pair.Certificate, root.Raw)
	l, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go c.(*tls.Conn).Handshake()
		}
	}()
	if _, err := caclient.Connect(t.Context(), l.Addr().String(), ours.CreateToken(t, ca.Server, "",
		0)); !errors.Is(err, roost.Unauthenticated) ||
		!strings.Contains(err.Error(), "though it shows its certificate") {
		t.Errorf("a node that poses as the authority: got %v", err)
	}
}

func TestNoAnswer(t *testing.T) {
	r := ca.Start(t)
	token := r.CreateToken(t, ca.Server, "", 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	l.Close()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	go func() {
		for {
			c, err := plain.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("220 mail.example ESMTP\r\n"))
			c.Close()
		}
	}()
	for addr, says := range map[string]string{free: "nothing listens on port",
		plain.Addr().String(): "no authority of a pool", "no-such-host.invalid:9700": "no-such-host.invalid"} {
		if _, err := caclient.Connect(t.Context(), addr, token); !errors.Is(err, roost.Unavailable) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", addr, err)
		}
	}
}

// dialAnonymous returns a connection without a certificate and without verification.
func dialAnonymous(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestAnonymousMayJoinOnly calls every method of all services, without a certificate and
// with a node's.
func TestAnonymousMayJoinOnly(t *testing.T) {
	r := ca.Start(t)
	at := files(t)
	if _, err := join(t, r, at, r.CreateToken(t, ca.Server, "", 0), "", "n1"); err != nil {
		t.Fatal(err)
	}
	node, err := rpc.Dial(r.Addr, identity(t, at), peer.Authority)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	for _, m := range wire.Authority_ServiceDesc.Methods {
		method := "/roost.wire.Authority/" + m.MethodName
		// An empty request of an allowed caller is invalid: the test checks only whether
		// the call was permitted.
		denied := func(conn *grpc.ClientConn) bool {
			err := rpc.FromStatus(conn.Invoke(t.Context(), method, &wire.GreetRequest{}, &wire.GreetReply{}))
			return errors.Is(err, roost.PermissionDenied) && strings.HasPrefix(err.Error(), method)
		}
		if got, want := denied(dialAnonymous(t, r.Addr)), m.MethodName != "Greet" && m.MethodName != "Join" &&
			m.MethodName != "AcceptOffer" && m.MethodName != "CertifyGuest"; got != want {
			t.Errorf("%s by a stranger: denied %v, want %v", m.MethodName, got, want)
		}
		if got, want := denied(node), m.MethodName != "VouchGuest" && m.MethodName != "Renew" &&
			m.MethodName != "Leave" &&
			m.MethodName != "Revoked" && m.MethodName != "MakePilotToken"; got != want {
			t.Errorf("%s by a node: denied %v, want %v", m.MethodName, got, want)
		}
	}
	if _, err := wire.NewScheddClient(dialAnonymous(t, r.Addr)).Health(t.Context(), &wire.HealthRequest{}); err == nil {
		t.Errorf("a stranger reaches a schedd")
	}
}

// TestTokensMadeOnHostOnly checks that a hand-made certificate with the authority's role
// makes no tokens over the network.
func TestTokensMadeOnHostOnly(t *testing.T) {
	r := ca.Start(t)
	at, err := pki.IssueTo(r.Dir, "false", []peer.Role{peer.Authority})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientAs(t, r.Addr, identity(t, &at)).MakeToken(t.Context(),
		&wire.MakeTokenRequest{Part: "server"}); !errors.Is(rpc.FromStatus(err), roost.PermissionDenied) {
		t.Errorf("got %v", err)
	}
}

func TestAnonymousAreBounded(t *testing.T) {
	r := ca.Start(t)
	// A request that is too large is not read.
	big := wire.NewAuthorityClient(dialAnonymous(t, r.Addr))
	if _, err := big.Join(t.Context(),
		&wire.JoinRequest{Secret: make([]byte, ca.MaxBody)}); !errors.Is(rpc.FromStatus(err), roost.Exhausted) {
		t.Errorf("a large request: got %v", err)
	}
	// After some tries wrong tokens are refused without a record in the log; the right
	// one still works.
	var err error
	for range ca.FreeAttempts + 1 {
		_, err = big.Join(t.Context(), &wire.JoinRequest{Secret: []byte("wrong")})
	}
	if !errors.Is(rpc.FromStatus(err), roost.Exhausted) ||
		strings.Count(r.Log(), "refused to let") != ca.FreeAttempts {
		t.Errorf("got %v and in the log\n%s", err, r.Log())
	}
	// Silent connections are closed, the oldest first, and do not lock others out.
	var silent []net.Conn
	for range ca.MaxPerAddress + 4 {
		c, err := net.Dial("tcp", r.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	at := files(t)
	if _, err := join(t, r, at, r.CreateToken(t, ca.Server, "", 0), "", "n1"); err != nil {
		t.Errorf("an honest machine meanwhile: got %v", err)
	}
	for _, c := range silent[:4] {
		c.SetReadDeadline(time.Now().Add(4 * time.Second)) // less than a handshake may take
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the oldest is still there: %v", err)
		}
	}
}

// TestForeignCertificates checks that a certificate of another authority, or an invalid
// one, gives no access.
func TestForeignCertificates(t *testing.T) {
	ours, theirs := ca.Start(t), ca.Start(t)
	at := files(t)
	if _, err := join(t, theirs, at, theirs.CreateToken(t, ca.Server, "", 0), "", "n1"); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(at.Certificate, at.Key)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(ours.Addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &pair, nil
		},
	})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := wire.NewAuthorityClient(conn).Greet(ctx, &wire.GreetRequest{}); err == nil {
		t.Errorf("it was greeted")
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	// the client may get the error before the log has it
	for log := ""; !strings.Contains(log, "another pool's authority"); log = ours.Log() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the log does not say why:\n%s", log)
		}
	}
}

// TestRun runs the daemon itself with a node file, the kernel's peer credentials, and one
// owner of the store.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	node := &config.Node{Name: "central", Pool: "lab", Dir: dir,
		Authority: &config.AuthoritySettings{Listen: []string{"127.0.0.1:0"}, Dir: filepath.Join(dir, "authority")}}
	if err := os.Mkdir(node.RunDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := ca.Run(t.Context(), node); !errors.Is(err, roost.NoInput) {
		t.Errorf("without keys: got %v", err)
	}
	if err := pki.Init(node.Authority.Dir, "lab"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ca.Run(ctx, node) }()
	admin := clientAs(t, "unix:"+node.AuthoritySocket(), nil)
	if _, err := admin.MakeToken(t.Context(), &wire.MakeTokenRequest{Part: "server"},
		grpc.WaitForReady(true)); err != nil {
		t.Error(err)
	}
	if err := ca.Run(t.Context(), node); !errors.Is(err, roost.Conflict) {
		t.Errorf("twice: got %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("at the end: got %v", err)
	}
}
