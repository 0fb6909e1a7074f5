package e2e

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/oidc/oidctest"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// findNginx returns the program, or skips the test.
func findNginx(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"/usr/sbin/nginx", "../../build/nginx/usr/sbin/nginx"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skip("SKIPPED: the web daemon behind nginx is not tested: nginx is missing (scripts/setup.sh tests)")
	return ""
}

// freePort returns a port of this host that nobody uses now, and that no outgoing
// connection gets.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(10000 + mathrand.IntN(roost.FirstDynamicPort-10000))
		if l, err := net.Listen("tcp", ":"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// writeCertificate makes a certificate of this host and its key, in two files.
func writeCertificate(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(text)
	for file, text := range map[string][]byte{certFile: text,
		keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// startNginx runs nginx with the sample of etc/web, on a port and a socket of the test's.
func startNginx(t *testing.T, dir, port, socket string) {
	t.Helper()
	program := findNginx(t)
	sample, err := os.ReadFile("../../etc/web/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	pages, _, _ := strings.Cut(string(sample), "server {\n    listen 80;")
	for from, to := range map[string]string{"listen 443 ": "listen 127.0.0.1:" + port + " ",
		"roost.example.org": "localhost", "/etc/ssl/": dir + "/", "/var/log/nginx/": dir + "/",
		"/run/roost/web.sock": socket} {
		if !strings.Contains(pages, from) {
			t.Fatalf("the sample has no %q", from)
		}
		pages = strings.ReplaceAll(pages, from, to)
	}
	main := "daemon off;\npid nginx.pid;\nerror_log " + dir + "/error.log;\nevents {}\nhttp {\n"
	if os.Geteuid() == 0 {
		main = "user root;\n" + main
	}
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		main += kind + "_temp_path " + dir + "/" + kind + ";\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(main+pages+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e",
		filepath.Join(dir, "error.log"))
	startServer(t, cmd, syscall.SIGTERM, func(error) {
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Logf("nginx says: %s", text)
		}
	})
}

// proxyFixture is a pool whose web daemon is behind a proxy.
type proxyFixture struct {
	*webBrowser
	pool  *Pool
	dir   string
	roots *x509.CertPool
}

// TestWebBehindNginx uses a web daemon on a unix socket through nginx. It logs in by
// several ways, reads output as it comes, and looks at the address of the client.
func TestWebBehindNginx(t *testing.T) {
	t.Parallel()
	findNginx(t)
	useWebBehind(t, startNginx)
}

// useWebBehind uses a web daemon through a proxy, which serves on a port.
func useWebBehind(t *testing.T, startProxy func(t *testing.T, dir, port, socket string)) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "roost-proxy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	port := freePort(t)
	site := "https://localhost:" + port
	provider := oidctest.New(oidctest.Client{ID: "roost", Secret: "s", Redirect: site + "/login/university/callback"})
	t.Cleanup(provider.Server.Close)
	x := &proxyFixture{dir: dir}
	x.roots = writeCertificate(t, filepath.Join(dir, "roost.pem"), filepath.Join(dir, "roost.key"))
	socket := filepath.Join(dir, "web.sock")
	node := &config.Node{Name: "n1", Dir: filepath.Join(dir, "d"), Collector: &config.CollectorSettings{},
		Negotiator: &config.NegotiatorSettings{}, Schedd: &config.ScheddSettings{AllowRoot: true},
		Startds: []config.StartdSettings{{Name: "n1", AllowRoot: true, Resources: roost.Resources{CPU: 1000}}},
		Web: &config.WebSettings{Listen: []string{"unix:" + socket}, URL: site, User: "root",
			Providers: []config.OIDCProvider{x.provider(t, provider)}}}
	x.pool, err = Start(ctx, PoolOptions{Roost: program(t), Dir: node.Dir, Nodes: 1, Node: node})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.pool.Stop() })
	startProxy(t, dir, port, socket)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	x.webBrowser = &webBrowser{T: t, ctx: ctx, url: site, http: http.Client{Jar: jar, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: x.roots}, ForceAttemptHTTP2: true}}}
	if !pollUntil(ctx, awaitTimeout, func() bool {
		answer, err := x.http.Get(site + "/readyz")
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}) {
		t.Fatalf("the proxy does not answer\n%s", x.pool.Output())
	}
	x.logIn()
	x.readOutput()
	t.Run("key", func(*testing.T) { x.useKey() })
	t.Run("provider", func(t *testing.T) { x.useProvider(t, provider) })
}

// provider writes the files of an OpenID provider. A person of this host is its user.
func (x *proxyFixture) provider(t *testing.T, p *oidctest.Provider) config.OIDCProvider {
	t.Helper()
	person := personOf(t)
	for file, text := range map[string]string{"accounts": "f81d4fae " + person + "\n", "secret": "s\n",
		"provider.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: p.Server.Certificate().Raw}))} {
		if err := os.WriteFile(filepath.Join(x.dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.OIDCProvider{Name: "university", Issuer: p.Issuer(), Client: "roost", Claim: "sub", Local: true,
		SecretFile: filepath.Join(x.dir, "secret"), Accounts: filepath.Join(x.dir, "accounts"),
		Authority: filepath.Join(x.dir, "provider.pem")}
}

// personOf returns an account of a person that the schedd serves; empty: there is none.
func personOf(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		me, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		return me.Username
	}
	for uid := 1000; uid < 1100; uid++ {
		if u, err := user.LookupId(fmt.Sprint(uid)); err == nil {
			return u.Username
		}
	}
	return ""
}

// logIn logs in by a link, and says that it comes from elsewhere.
func (x *proxyFixture) logIn() {
	x.Helper()
	link, stderr, code := x.pool.Command(x.ctx, "web", "login")
	site, token, ok := strings.Cut(strings.TrimSpace(link), "/login#")
	if code != 0 || !ok || site != x.url {
		x.Fatalf("roost web login: %d %q %s", code, link, stderr)
	}
	if code := x.call("POST", "/v1/session", map[string]any{"token": token}, nil, "X-Forwarded-For", "203.0.113.9",
		"Forwarded", "for=203.0.113.9", "X-Real-IP", "203.0.113.9"); code != http.StatusCreated {
		x.Fatalf("login: %d", code)
	}
	text, err := os.ReadFile(filepath.Join(x.pool.Dir, "web", "audit.log"))
	if err != nil || !strings.Contains(string(text), `"from":"127.0.0.1"`) || strings.Contains(string(text), "203.0") {
		x.Errorf("the log of writes: %v %s", err, text)
	}
}

// readOutput follows a task's output while it runs, and reads a long one as a whole.
func (x *proxyFixture) readOutput() {
	x.Helper()
	const size = 24 << 20
	read := filepath.Join(openDir(x.T), "read") // the task writes no more before it is there
	var made submitted
	x.call("POST", "/v1/jobs", map[string]any{"text": fmt.Sprintf("job \"a\" {\n  command = [\"sh\", \"-c\", "+
		"\"echo begun; while [ ! -e %s ]; do sleep 0.05; done; head -c %d /dev/zero | tr '\\\\0' x\"]\n}\n",
		read, size)}, &made)
	if len(made.Jobs) != 1 {
		x.Fatalf("got %+v", made)
	}
	path := "/v1/tasks/" + strings.Replace(made.Jobs[0].ID, ".", "[0].", 1) + "/log/out"
	var answer *http.Response
	if !pollUntil(x.ctx, awaitTimeout, func() bool {
		var err error
		if answer, err = x.http.Get(x.url + path + "?follow=1"); err != nil {
			x.Fatal(err)
		}
		if answer.StatusCode != http.StatusOK {
			answer.Body.Close()
		}
		return answer.StatusCode == http.StatusOK
	}) {
		x.Fatalf("the output: %v", answer.Status)
	}
	defer answer.Body.Close()
	stream := bufio.NewReader(answer.Body)
	if line, err := stream.ReadString('\n'); line != "begun\n" {
		x.Fatalf("the first line is %q, %v", line, err)
	}
	if err := os.WriteFile(read, nil, 0o644); err != nil {
		x.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, stream); n != size || err != nil {
		x.Errorf("the followed output has %d bytes, %v", n, err)
	}
	whole, err := x.http.Get(x.url + path + "?whole=1")
	if err != nil {
		x.Fatal(err)
	}
	defer whole.Body.Close()
	if n, err := io.Copy(io.Discard, whole.Body); n != size+6 || err != nil {
		x.Errorf("the whole output has %d bytes, %v", n, err)
	}
}

// useKey makes an API token with the key of a login on another machine, and revokes that
// login.
func (x *proxyFixture) useKey() {
	x.Helper()
	reply, err := x.pool.Client.LoginToken(x.ctx, &wire.LoginTokenRequest{Web: true, Life: int64(24 * time.Hour)})
	if err != nil {
		x.Fatal(err)
	}
	if left := time.Until(time.Unix(0, reply.GetExpires())); left > time.Minute {
		x.Errorf("a link is good for %v", left)
	}
	token, err := login.ParseToken(reply.GetToken())
	if err != nil {
		x.Fatal(err)
	}
	g, err := login.NewRequest(token)
	if err != nil {
		x.Fatal(err)
	}
	request, err := g.CertRequest()
	if err != nil {
		x.Fatal(err)
	}
	conn, err := rpc.DialLogins("unix:"+filepath.Join(x.pool.Dir, "run", "logins.sock"), g.Identity)
	if err != nil {
		x.Fatal(err)
	}
	defer conn.Close()
	made, err := wire.NewScheddClient(conn).Login(x.ctx, &wire.LoginRequest{Secret: token.Secret[:], Request: request})
	if err != nil {
		x.Fatal(err)
	}
	entry, err := g.Entry(x.ctx, made.GetNode(), "", made.GetUser(), made.GetCertificate())
	if err == nil {
		err = entry.Save(filepath.Join(x.dir, "roost", "logins"))
	}
	if err != nil {
		x.Fatal(err)
	}
	x.pool.Env = append(x.pool.Env, "XDG_CONFIG_HOME="+x.dir)
	args := []string{"web", "token", "add", "laptop", "--remote", x.url, "--authority"}
	if _, stderr, code := x.pool.Command(x.ctx, append(args, "/etc/hostname")...); code == 0 {
		x.Errorf("a foreign authority is trusted: %s", stderr)
	}
	secret, stderr, code := x.pool.Command(x.ctx, append(args, filepath.Join(x.dir, "roost.pem"))...)
	if code != 0 || !strings.HasPrefix(secret, "rtk_") {
		x.Fatalf("roost web token add --remote: %d %q %s", code, secret, stderr)
	}
	program := &webBrowser{T: x.T, ctx: x.ctx, url: x.url, token: strings.TrimSpace(secret),
		http: http.Client{Transport: x.http.Transport}}
	if code := program.call("GET", "/v1/logins", nil, nil); code != http.StatusOK {
		x.Errorf("the token: %d", code)
	}
	leaf, err := x509.ParseCertificate(made.GetCertificate())
	if err != nil {
		x.Fatal(err)
	}
	if _, stderr, code := x.pool.Command(x.ctx, "logins", "rm", leaf.SerialNumber.Text(16)[:10]); code != 0 {
		x.Fatalf("roost logins rm: %s", stderr)
	}
	if code := program.call("GET", "/v1/logins", nil, nil); code != http.StatusUnauthorized {
		x.Errorf("the token outlives the login of which it was made: %d", code)
	}
}

// useProvider logs in by an OpenID provider.
func (x *proxyFixture) useProvider(t *testing.T, p *oidctest.Provider) {
	person := personOf(t)
	if person == "" {
		t.Skip("SKIPPED: a login by an OpenID provider is not tested: this host has no account of a person")
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &webBrowser{T: t, ctx: x.ctx, url: x.url, http: http.Client{Jar: jar, Transport: x.http.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	begun, err := b.http.Get(x.url + "/login/university")
	if err != nil {
		t.Fatal(err)
	}
	defer begun.Body.Close()
	back, err := p.Visit(begun.Header.Get("Location"))
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, begun.Status, x.pool.Output())
	}
	r, err := http.NewRequestWithContext(x.ctx, "POST", x.url+"/login/university/callback",
		strings.NewReader(url.Values(back).Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := b.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	var who struct{ User, Way string }
	if b.call("GET", "/v1/session", nil, &who); who.User != person || who.Way != "oidc" {
		t.Errorf("got %+v, after %s %s\n%s", who, answer.Status, text, x.pool.Output())
	}
}
