package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// logBuffer holds the log of a test.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *logBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *logBuffer) contains(words string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), words)
}

func listen(t *testing.T) *logBuffer {
	s, before := new(logBuffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(s, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return s
}

// streamingCollector is a collector whose queries send until their peer closes the
// stream.
type streamingCollector struct {
	wire.UnimplementedCollectorServer
	gone chan error
}

func (s *streamingCollector) Query(_ *wire.AdQuery, stream grpc.ServerStreamingServer[wire.AdText]) error {
	if err := stream.Send(&wire.AdText{Ad: "[]"}); err != nil {
		return err
	}
	<-stream.Context().Done()
	s.gone <- stream.Context().Err()
	return stream.Context().Err()
}

// nodePair is two nodes of a pool with a stream from one to the other. Each has a
// directory like that of a machine of its own.
type nodePair struct {
	t              *testing.T
	authority      *pki.Authority
	server, client *config.TLSFiles
	daemon         *streamingCollector
	conn           *grpc.ClientConn
	stream         grpc.ServerStreamingClient[wire.AdText]
}

// writeNodeFiles writes a node's files as a join does.
func writeNodeFiles(t *testing.T, a *pki.Authority, name string, role peer.Role, life time.Duration) *config.TLSFiles {
	t.Helper()
	dir := t.TempDir()
	files := &config.TLSFiles{CA: dir + "/ca.pem", Certificate: dir + "/node.pem", Key: dir + "/node.key"}
	if err := pki.SaveAuthority(files, a.Certificate()); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.Request(files.Key); err != nil {
		t.Fatal(err)
	}
	issueCertificate(t, a, files, name, role, life)
	return files
}

// issueCertificate issues a new certificate for a node's present key, and returns its
// serial number.
func issueCertificate(t *testing.T, a *pki.Authority, files *config.TLSFiles, name string, role peer.Role,
	life time.Duration) *big.Int {
	t.Helper()
	der, err := pki.Request(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := pki.ParseRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := a.Certify(public, name, []peer.Role{role}, life)
	if err == nil {
		err = pki.SaveCertificate(files, cert.Raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cert.SerialNumber
}

func serialOf(t *testing.T, files *config.TLSFiles) *big.Int {
	t.Helper()
	cert, err := pki.ReadCertificate(files.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return cert.SerialNumber
}

// revoke writes a list with a number to where a node has its list.
func revoke(t *testing.T, a *pki.Authority, at *config.TLSFiles, number int64, serials ...*big.Int) {
	t.Helper()
	var all []pki.RevokedCert
	for _, s := range serials {
		all = append(all, pki.RevokedCert{Serial: s, At: time.Now()})
	}
	der, err := a.Revocations(number, all, time.Now(), time.Hour)
	if err == nil {
		err = pki.SaveRevocations(at, der)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func loadIdentity(t *testing.T, files *config.TLSFiles) *rpc.Identity {
	t.Helper()
	id, err := pki.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// startNodePair starts both nodes, in a bubble, with a working stream between them.
func startNodePair(t *testing.T, serverLife, clientLife time.Duration) *nodePair {
	t.Helper()
	a, err := pki.NewAuthority("lab", pki.AuthorityValidity)
	if err != nil {
		t.Fatal(err)
	}
	p := &nodePair{t: t, authority: a, daemon: &streamingCollector{gone: make(chan error, 10)}}
	p.server, p.client = writeNodeFiles(t, a, "central", peer.Collector, serverLife),
		writeNodeFiles(t, a, "n1", peer.Startd, clientLife)
	l := bufconn.Listen(1 << 16)
	s := rpc.NewServer(loadIdentity(t, p.server), peer.MethodAccess())
	wire.RegisterCollectorServer(s, p.daemon)
	go s.Serve(l)
	p.conn, err = rpc.DialTransport("central", loadIdentity(t, p.client), peer.Collector,
		func(ctx context.Context, _ string) (net.Conn, error) {
			return l.DialContext(ctx)
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.conn.Close(); s.Stop(); l.Close() })
	p.stream = p.query()
	if _, err := p.stream.Recv(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *nodePair) query() grpc.ServerStreamingClient[wire.AdText] {
	p.t.Helper()
	stream, err := wire.NewCollectorClient(p.conn).Query(p.t.Context(), &wire.AdQuery{})
	if err != nil {
		p.t.Fatal(err)
	}
	return stream
}

// expectCutOff waits for the end of the stream at both sides, and checks that it came
// within d.
func (p *nodePair) expectCutOff(d time.Duration) {
	p.t.Helper()
	began := time.Now()
	if _, err := p.stream.Recv(); !errors.Is(rpc.FromStatus(err), roost.Unavailable) {
		p.t.Errorf("the stream: got %v", err)
	}
	<-p.daemon.gone
	if took := time.Since(began); took > d {
		p.t.Errorf("cut after %v, want %v at most", took, d)
	}
}

// expectRefused calls again and expects an error with one of some texts.
func (p *nodePair) expectRefused(texts ...string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	stream, err := wire.NewCollectorClient(p.conn).Query(ctx, &wire.AdQuery{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err == nil || !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(err.Error(), s) }) {
		p.t.Errorf("the next call: got %v, want %q", err, texts)
	}
	synctest.Wait() // the server logs after the client has the error
}

func TestRevokedClientIsCutOff(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		p := startNodePair(t, time.Hour, time.Hour)
		revoke(t, p.authority, p.server, 1, serialOf(t, p.client))
		p.expectCutOff(2 * time.Second)
		p.expectRefused("connection", "closed pipe")
		for _, words := range []string{`msg="closed the connection of a peer" peer=n1`, "was revoked on 2000-01-01",
			`msg="refused a connection"`} {
			if !log.contains(words) {
				t.Errorf("the log lacks %q: %s", words, &log.text)
			}
		}
		// A new certificate is accepted without a restart.
		issueCertificate(t, p.authority, p.client, "n1", peer.Startd, time.Hour)
		time.Sleep(5 * time.Second)
		if _, err := p.query().Recv(); err != nil {
			t.Errorf("with a new certificate: %v", err)
		}
	})
}

func TestRevokedServerDisconnected(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		p := startNodePair(t, time.Hour, time.Hour)
		revoke(t, p.authority, p.client, 1, serialOf(t, p.server))
		p.expectCutOff(2 * time.Second)
		p.expectRefused("was revoked on")
		if !log.contains(`msg="closed the connection of a peer" peer=central`) {
			t.Errorf("the log: %s", &log.text)
		}
	})
}

func TestCertificateExpiresDuringCall(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		p := startNodePair(t, time.Hour, time.Minute)
		p.expectCutOff(time.Minute + 2*time.Second)
		if !log.contains("expired on 2000-01-01: issue a new one") {
			t.Errorf("the log: %s", &log.text)
		}
	})
}

func TestRenewalKeepsCallsGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startNodePair(t, time.Minute, time.Hour)
		time.Sleep(40 * time.Second)
		issueCertificate(t, p.authority, p.server, "central", peer.Collector, time.Hour)
		p.expectCutOff(30 * time.Second) // the old certificate ends
		for range 3 {
			if _, err := p.query().Recv(); err != nil {
				t.Errorf("after the renewal: %v", err)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestInvalidRevocationListsIgnored(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		p := startNodePair(t, time.Hour, time.Hour)
		other, err := pki.NewAuthority("lab", pki.AuthorityValidity)
		if err != nil {
			t.Fatal(err)
		}
		revoke(t, other, p.server, 1, serialOf(t, p.client))
		time.Sleep(3 * time.Second)
		if len(p.daemon.gone) > 0 || !log.contains("a list of revoked certificates is not used") {
			t.Errorf("signed by another authority: %d gone, log %s", len(p.daemon.gone), &log.text)
		}
		revoke(t, p.authority, p.server, 7, big.NewInt(42))
		time.Sleep(3 * time.Second)
		revoke(t, p.authority, p.server, 6, serialOf(t, p.client))
		time.Sleep(3 * time.Second)
		if len(p.daemon.gone) > 0 || !log.contains("it is number 6, and number 7 was here before") {
			t.Errorf("an older one: %d gone, log %s", len(p.daemon.gone), &log.text)
		}
		revoke(t, p.authority, p.server, 8, serialOf(t, p.client))
		p.expectCutOff(2 * time.Second)
		if err := os.Remove(pki.RevocationsFile(p.server)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		p.expectRefused("connection", "closed pipe")
		if !log.contains("what was on it stays revoked") {
			t.Errorf("the log: %s", &log.text)
		}
	})
}
