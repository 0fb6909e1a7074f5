package metrics

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
)

const testToken = "0123456789abcdef0123456789abcdef"

// startExporter serves the metrics of a schedd on a free port. change may change the node
// before.
func startExporter(t *testing.T, id *rpc.Identity, change func(n *config.Node)) *Exporter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("\n"+testToken+"\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	node := &config.Node{Name: "n1", Metrics: &config.MetricsSettings{Schedd: address, TokenFile: file,
		Names: []string{"N1.lab.example"}}}
	change(node)
	e, err := Open(node, "schedd", "", id, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := NewSchedd(e.Registry(), t.TempDir())
	publish(s.Snapshots, ScheddSnapshot{})
	publish(NewUsers(e.Users()).Snapshots, manyUsers(3))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { e.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return e
}

// ask sends a request and returns the status and the body.
func ask(t *testing.T, e *Exporter, method, path string, set func(r *http.Request)) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+e.Address()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	set(r)
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(body)
}

func withToken(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func TestPageAccess(t *testing.T) {
	e := startExporter(t, nil, func(*config.Node) {})
	_, port, _ := net.SplitHostPort(e.Address())
	for _, c := range []struct {
		what, method, path, host, token string
		want                            int
	}{
		{"a reader", "GET", "/metrics", "", testToken, 200},
		{"by a name of the node file", "GET", "/metrics", "n1.LAB.example:" + port, testToken, 200},
		{"by the node's name", "GET", "/metrics", "n1", testToken, 200},
		{"by localhost", "HEAD", "/metrics", "localhost:" + port, testToken, 200},
		{"no token", "GET", "/metrics", "", "", 401},
		{"a wrong token", "GET", "/metrics", "", strings.ToUpper(testToken), 401},
		{"a part of the token", "GET", "/metrics", "", testToken[:31], 401},
		{"a rebound name", "GET", "/metrics", "evil.example", testToken, 421},
		{"a rebound name with the port", "GET", "/metrics", "evil.example:" + port, "", 421},
		{"a name that ends alike", "GET", "/metrics", "evil.n1.lab.example", testToken, 421},
		{"another page", "GET", "/", "", testToken, 404},
		{"another page without a token", "GET", "/debug/pprof/", "", "", 401},
		{"a way around", "GET", "/x/../metrics", "", testToken, 404},
		{"a write", "POST", "/metrics", "", testToken, 405},
		{"a deletion", "DELETE", "/metrics", "", testToken, 405},
	} {
		status, header, body := ask(t, e, c.method, c.path, func(r *http.Request) {
			r.Host = c.host
			if c.token != "" {
				withToken(c.token)(r)
			}
		})
		if status != c.want {
			t.Errorf("%s: %d, want %d: %s", c.what, status, c.want, body)
		}
		if strings.Contains(body, "roost_schedd") != (c.want == 200 && c.method == "GET") {
			t.Errorf("%s: the body is %.100q", c.what, body)
		}
		if status == 401 && header.Get("WWW-Authenticate") == "" || header.Get("X-Content-Type-Options") != "nosniff" ||
			header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: the headers are %v", c.what, header)
		}
		if strings.Contains(body, testToken) {
			t.Errorf("%s: the token is in the answer", c.what)
		}
	}
}

// TestUsersPage checks who may read the page of users. There is none unless the node file
// asks for it.
func TestUsersPage(t *testing.T) {
	off := startExporter(t, nil, func(*config.Node) {})
	on := startExporter(t, nil, func(n *config.Node) { n.Metrics.Users = true })
	for _, c := range []struct {
		what  string
		e     *Exporter
		path  string
		token string
		host  string
		want  int
	}{
		{"a reader", on, "/metrics/users", testToken, "", 200},
		{"no token", on, "/metrics/users", "", "", 401},
		{"a wrong token", on, "/metrics/users", testToken + "0", "", 401},
		{"a rebound name", on, "/metrics/users", testToken, "evil.example", 421},
		{"what is below", on, "/metrics/users/u1", testToken, "", 404},
		{"where it is off", off, "/metrics/users", testToken, "", 404},
		{"the other page", on, "/metrics", testToken, "", 200},
	} {
		status, _, body := ask(t, c.e, "GET", c.path, func(r *http.Request) {
			r.Host = c.host
			if c.token != "" {
				withToken(c.token)(r)
			}
		})
		if status != c.want {
			t.Errorf("%s: %d, want %d: %s", c.what, status, c.want, body)
		}
		if has := strings.Contains(body, `roost_schedd_user_cores{user="u2"} 2`); has != (c.what == "a reader") {
			t.Errorf("%s: the body is %.200q", c.what, body)
		}
	}
}

// TestNoHost sends a request of HTTP/1.0, which names no host.
func TestNoHost(t *testing.T) {
	e := startExporter(t, nil, func(*config.Node) {})
	conn, err := net.Dial("tcp", e.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /metrics HTTP/1.0\r\nAuthorization: Bearer %s\r\n\r\n", testToken)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 421 ") {
		t.Errorf("got %q, %v", line, err)
	}
}

// TestHeadersAreBounded sends a header that is too long.
func TestHeadersAreBounded(t *testing.T) {
	e := startExporter(t, nil, func(*config.Node) {})
	conn, err := net.Dial("tcp", e.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go fmt.Fprintf(conn, "GET /metrics HTTP/1.1\r\nHost: n1\r\nAuthorization: Bearer %s\r\nX-Long: %s\r\n\r\n",
		testToken, strings.Repeat("x", 64<<10))
	// the server may close before it has read all, and the answer may then be lost
	line, err := bufio.NewReader(conn).ReadString('\n')
	if !strings.Contains(line, " 431 ") && err == nil {
		t.Errorf("got %q", line)
	}
}

// TestConnectionsAreBounded opens more connections than are served. When some are closed
// the reader that waits is answered.
func TestConnectionsAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limited := newConnLimiter(l, 2)
	accepted := make(chan net.Conn)
	go func() {
		for {
			conn, err := limited.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- conn
		}
	}()
	var open []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if len(open) < 2 {
			open = append(open, <-accepted)
		}
	}
	select {
	case <-accepted:
		t.Fatal("a third connection was accepted")
	case <-time.After(50 * time.Millisecond):
	}
	open[0].Close()
	open[0].Close() // counts once
	third, ok := <-accepted
	if !ok {
		t.Fatal("the third connection was not accepted")
	}
	third.Close()
	limited.Close()
	if _, ok := <-accepted; ok {
		t.Error("a connection after the end")
	}
}

func TestTokenFile(t *testing.T) {
	e := startExporter(t, nil, func(*config.Node) {})
	f := e.access.tokens
	const second = "ffffffffffffffffffffffffffffffff"
	reread := func() {
		f.lookedAt = time.Time{}
		f.current(time.Now())
		f.lookedAt = time.Now().Add(time.Hour) // what was read now stays
	}
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(f.path+".new", []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(f.path+".new", mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(f.path+".new", f.path); err != nil {
			t.Fatal(err)
		}
		reread()
	}
	has := func() string { return fmt.Sprint(f.has(testToken), f.has(second)) }
	for _, c := range []struct {
		what, text string
		mode       os.FileMode
		want       string
	}{
		{"both", testToken + "\n" + second, 0o600, "true true"},
		{"one is taken back", second + "\n", 0o640, "false true"},
		{"everybody may read it", second + "\n", 0o644, "false false"},
		{"it is back", testToken + "\n", 0o600, "true false"},
		{"it is empty", "\n\n", 0o600, "false false"},
		{"a short one", "short\n", 0o600, "false false"},
	} {
		if write(c.text, c.mode); has() != c.want {
			t.Errorf("%s: %s, want %s", c.what, has(), c.want)
		}
	}
	os.Remove(f.path)
	if reread(); has() != "false false" {
		t.Errorf("without the file: %s", has())
	}
	gone := &config.Node{Metrics: &config.MetricsSettings{Schedd: "127.0.0.1:1", TokenFile: f.path}}
	if _, err := Open(gone, "schedd", "", nil, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), f.path) {
		t.Errorf("without the file a daemon starts: %v", err)
	}
	for _, text := range []string{strings.Repeat("x", maxTokenFile+1), strings.Repeat(testToken+"\n", maxTokens+1),
		testToken + " " + testToken, strings.Repeat("x", maxTokenBytes+1)} {
		if all, err := parseTokens([]byte(text)); err == nil || strings.Contains(err.Error(), testToken) {
			t.Errorf("%.40q: %d tokens, %v", text, len(all), err)
		}
	}
}

// testIdentity makes the identity of a node of an authority.
func testIdentity(t *testing.T, a *pki.Authority, name string) (*rpc.Identity, tls.Certificate) {
	t.Helper()
	cert, key, err := a.Issue(name, []peer.Role{peer.Schedd}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ca, _, err := a.PEM()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := &config.TLSFiles{CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "node.pem"),
		Key: filepath.Join(dir, "node.key")}
	for path, text := range map[string][]byte{files.CA: ca, files.Certificate: cert,
		files.Key: key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	id, err := pki.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return id, pair
}

// TestTLS reads over TLS as Prometheus does. A reader verifies the certificate of the
// node by the pool's authority and the node's name.
func TestTLS(t *testing.T) {
	authority, err := pki.NewAuthority("pool", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := pki.NewAuthority("pool", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	id, own := testIdentity(t, authority, "n1")
	_, outsider := testIdentity(t, foreign, "n1")
	e := startExporter(t, id, func(*config.Node) {})
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate())
	for _, c := range []struct {
		what   string
		server string
		certs  []tls.Certificate
		token  string
		want   string
	}{
		{"a token", "n1", nil, testToken, "200"},
		{"a certificate", "n1", []tls.Certificate{own}, "", "200"},
		{"neither", "n1", nil, "", "401"},
		{"a wrong token", "n1", nil, testToken + "x", "401"},
		{"a outsider's certificate with a token", "n1", []tls.Certificate{outsider}, testToken, "bad certificate"},
		{"another node's name", "n2", nil, testToken, "n2"},
	} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots,
			ServerName: c.server, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(c.certs) == 0 {
					return &tls.Certificate{}, nil
				}
				return &c.certs[0], nil
			}}}}
		r, err := http.NewRequest("GET", "https://"+e.Address()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			withToken(c.token)(r)
		}
		got := ""
		if response, err := client.Do(r); err != nil {
			got = err.Error()
		} else {
			got = response.Status
			response.Body.Close()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
		client.CloseIdleConnections()
	}
	expires := gather(t, e.registry)["roost_schedd_certificate_expires_timestamp_seconds"]
	if left := series(expires, nil).GetGauge().GetValue() - float64(time.Now().Unix()); left < 3000 || left > 3601 {
		t.Errorf("the certificate ends in %v s, want about an hour", left)
	}
}
