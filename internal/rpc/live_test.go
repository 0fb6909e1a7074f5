package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// said is what is logged while a test runs.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) has(words string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), words)
}

func listen(t *testing.T) *said {
	s, before := new(said), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(s, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return s
}

// streaming is a collector whose queries go on until their peer is gone.
type streaming struct {
	wire.UnimplementedCollectorServer
	gone chan error
}

func (s *streaming) Query(_ *wire.AdQuery, stream grpc.ServerStreamingServer[wire.AdText]) error {
	if err := stream.Send(&wire.AdText{Ad: "[]"}); err != nil {
		return err
	}
	<-stream.Context().Done()
	s.gone <- stream.Context().Err()
	return stream.Context().Err()
}

// two are two nodes of a pool with a directory each, as on two machines, and a stream from one to the other.
type two struct {
	t              *testing.T
	authority      *pki.Authority
	server, client *config.TLS
	serving        *streaming
	conn           *grpc.ClientConn
	stream         grpc.ServerStreamingClient[wire.AdText]
}

// enrol gives a node a directory with the files that a join leaves there.
func enrol(t *testing.T, a *pki.Authority, name string, role auth.Role, life time.Duration) *config.TLS {
	t.Helper()
	dir := t.TempDir()
	files := &config.TLS{CA: dir + "/ca.pem", Certificate: dir + "/node.pem", Key: dir + "/node.key"}
	if err := pki.KeepAuthority(files, a.Certificate()); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.Request(files.Key); err != nil {
		t.Fatal(err)
	}
	certify(t, a, files, name, role, life)
	return files
}

// certify gives a node a new certificate for the key that it has, and returns its number.
func certify(t *testing.T, a *pki.Authority, files *config.TLS, name string, role auth.Role, life time.Duration) *big.Int {
	t.Helper()
	der, err := pki.Request(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := pki.ParseRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := a.Certify(public, name, []auth.Role{role}, life)
	if err == nil {
		err = pki.KeepCertificate(files, cert.Raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cert.SerialNumber
}

func serialOf(t *testing.T, files *config.TLS) *big.Int {
	t.Helper()
	cert, err := pki.ReadCertificate(files.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return cert.SerialNumber
}

// revoke puts a list of that number where a node keeps it.
func revoke(t *testing.T, a *pki.Authority, at *config.TLS, number int64, serials ...*big.Int) {
	t.Helper()
	var all []pki.Revoked
	for _, s := range serials {
		all = append(all, pki.Revoked{Serial: s, At: time.Now()})
	}
	der, err := a.Revocations(number, all, time.Now(), time.Hour)
	if err == nil {
		err = pki.KeepRevocations(at, der)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func identify(t *testing.T, files *config.TLS) *rpc.Identity {
	t.Helper()
	id, err := pki.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// meet starts both, in a bubble, with a stream between them that works.
func meet(t *testing.T, serverLife, clientLife time.Duration) *two {
	t.Helper()
	a, err := pki.NewAuthority("lab", pki.AuthorityValidity)
	if err != nil {
		t.Fatal(err)
	}
	p := &two{t: t, authority: a, serving: &streaming{gone: make(chan error, 10)}}
	p.server, p.client = enrol(t, a, "central", auth.Collector, serverLife), enrol(t, a, "n1", auth.Startd, clientLife)
	l := bufconn.Listen(1 << 16)
	s := rpc.NewServer(identify(t, p.server), auth.Methods())
	wire.RegisterCollectorServer(s, p.serving)
	go s.Serve(l)
	p.conn, err = rpc.DialOver("central", identify(t, p.client), auth.Collector, func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) })
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

func (p *two) query() grpc.ServerStreamingClient[wire.AdText] {
	p.t.Helper()
	stream, err := wire.NewCollectorClient(p.conn).Query(p.t.Context(), &wire.AdQuery{})
	if err != nil {
		p.t.Fatal(err)
	}
	return stream
}

// cutIn waits for the end of the stream at both sides, and checks that it came within d.
func (p *two) cutIn(d time.Duration) {
	p.t.Helper()
	began := time.Now()
	if _, err := p.stream.Recv(); !errors.Is(rpc.FromStatus(err), roost.Unavailable) {
		p.t.Errorf("the stream: got %v", err)
	}
	<-p.serving.gone
	if took := time.Since(began); took > d {
		p.t.Errorf("cut after %v, want %v at most", took, d)
	}
}

// refused calls once more and wants that.
func (p *two) refused(words string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	stream, err := wire.NewCollectorClient(p.conn).Query(ctx, &wire.AdQuery{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err == nil || !strings.Contains(err.Error(), words) {
		p.t.Errorf("the next call: got %v, want %q", err, words)
	}
	synctest.Wait() // the server logs after the client has heard
}

func TestRevokedClientIsCutOff(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, time.Hour, time.Hour)
		revoke(t, p.authority, p.server, 1, serialOf(t, p.client))
		p.cutIn(2 * time.Second)
		p.refused("connection")
		for _, words := range []string{`msg="hung up on a peer" peer=n1`, "was revoked on 2000-01-01", `msg="refused a connection"`} {
			if !log.has(words) {
				t.Errorf("the log lacks %q: %s", words, &log.text)
			}
		}
		// Back with a new certificate, for which nothing has to be started again.
		certify(t, p.authority, p.client, "n1", auth.Startd, time.Hour)
		time.Sleep(5 * time.Second)
		if _, err := p.query().Recv(); err != nil {
			t.Errorf("with a new certificate: %v", err)
		}
	})
}

func TestRevokedServerIsHungUpOn(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, time.Hour, time.Hour)
		revoke(t, p.authority, p.client, 1, serialOf(t, p.server))
		p.cutIn(2 * time.Second)
		p.refused("was revoked on")
		if !log.has(`msg="hung up on a peer" peer=central`) {
			t.Errorf("the log: %s", &log.text)
		}
	})
}

func TestExpiredInTheMiddle(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, time.Hour, time.Minute)
		p.cutIn(time.Minute + 2*time.Second)
		if !log.has("expired on 2000-01-01: issue a new one") {
			t.Errorf("the log: %s", &log.text)
		}
	})
}

func TestRenewalKeepsCallsGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, time.Minute, time.Hour)
		time.Sleep(40 * time.Second)
		certify(t, p.authority, p.server, "central", auth.Collector, time.Hour)
		p.cutIn(30 * time.Second) // the old certificate ends
		for range 3 {
			if _, err := p.query().Recv(); err != nil {
				t.Errorf("after the renewal: %v", err)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestListsThatAreNotBelieved(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		p := meet(t, time.Hour, time.Hour)
		other, err := pki.NewAuthority("lab", pki.AuthorityValidity)
		if err != nil {
			t.Fatal(err)
		}
		revoke(t, other, p.server, 1, serialOf(t, p.client))
		time.Sleep(3 * time.Second)
		if len(p.serving.gone) > 0 || !log.has("a list of revoked certificates is not used") {
			t.Errorf("signed by another authority: %d gone, log %s", len(p.serving.gone), &log.text)
		}
		revoke(t, p.authority, p.server, 7, big.NewInt(42))
		time.Sleep(3 * time.Second)
		revoke(t, p.authority, p.server, 6, serialOf(t, p.client))
		time.Sleep(3 * time.Second)
		if len(p.serving.gone) > 0 || !log.has("it is number 6, and number 7 was here before") {
			t.Errorf("an older one: %d gone, log %s", len(p.serving.gone), &log.text)
		}
		revoke(t, p.authority, p.server, 8, serialOf(t, p.client))
		p.cutIn(2 * time.Second)
		if err := os.Remove(pki.RevocationsFile(p.server)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		p.refused("connection")
		if !log.has("what was on it stays revoked") {
			t.Errorf("the log: %s", &log.text)
		}
	})
}
