package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/proof"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/web/session"
	"github.com/roost-batch/roost/internal/wire"
)

// testWeb is a web daemon beside a fake schedd, with its handler under test.
type testWeb struct {
	*testing.T
	schedd *fakeSchedd
	server *server
	dir    string
	audit  *lockedBuffer
	logged *lockedBuffer
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *lockedBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

const testURL = "http://127.0.0.1:9780"

func newTestWeb(t *testing.T) *testWeb {
	t.Helper()
	dir, err := os.MkdirTemp("", "roost-web")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &config.Node{Name: "n1", Dir: dir, Schedd: &config.ScheddSettings{},
		Web: &config.WebSettings{Listen: []string{"127.0.0.1:9780"}, URL: testURL}}
	if err := os.MkdirAll(n.RunDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := login.Open(filepath.Join(dir, "logins"), "n1")
	if err != nil {
		t.Fatal(err)
	}
	w := &testWeb{T: t, dir: dir, audit: &lockedBuffer{}, logged: &lockedBuffer{},
		schedd: &fakeSchedd{logins: store, text: "x", keys: map[string]bool{}, news: make(chan string)}}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if w.schedd.proofs, err = proof.NewVerifier(n.Web, proof.Programs{OIDC: []string{own, proof.OIDCRole},
		PAM: []string{filepath.Join(dir, "no-pam")}}); err != nil {
		t.Fatal(err)
	}
	id, err := store.Identity(nil)
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewServer(id, peer.MethodAccess(), w.schedd.interceptors()...)
	wire.RegisterScheddServer(server, w.schedd)
	l, err := rpc.ListenLogins(n.LoginSocket(), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	t.Cleanup(server.Stop)
	log := slog.New(slog.NewTextHandler(w.logged, nil))
	if w.server, err = newServer(n, log, w.audit, metrics.NewWeb(nil)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.server.store.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

var accounts = map[string]login.HostAccount{"ann": {User: "ann", UID: 1000, GID: 1000},
	"bob": {User: "bob", UID: 1001, GID: 1001}}

// loginToken is what roost web login asks the schedd for.
func (w *testWeb) loginToken(user string) string {
	w.Helper()
	token, _, err := w.schedd.logins.MakeToken(accounts[user],
		login.TokenLifetimes{Token: time.Minute, Login: 24 * time.Hour}, time.Now())
	if err != nil {
		w.Fatal(err)
	}
	return token.String()
}

// request makes a request as a browser of this server would.
func (w *testWeb) request(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, testURL+path, strings.NewReader(body))
	r.Host = "127.0.0.1:9780"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/json")
	return r
}

func (w *testWeb) do(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.server.table.ServeHTTP(answer, r)
	return answer
}

// logIn returns the cookie of a new session.
func (w *testWeb) logIn(user string) *http.Cookie {
	w.Helper()
	answer := w.do(w.request("POST", "/v1/session", `{"token":"`+w.loginToken(user)+`"}`))
	if answer.Code != http.StatusCreated {
		w.Fatalf("login: %d %s", answer.Code, answer.Body)
	}
	return answer.Result().Cookies()[0]
}

// apiToken makes an API token.
func (w *testWeb) apiToken(user string, scopes ...session.Scope) string {
	w.Helper()
	secret, _, err := w.server.store.AddToken(context.Background(), session.TokenRequest{
		Proof: session.Proof{Token: w.loginToken(user)}, Name: "test", Scopes: scopes, Life: time.Hour}, "test")
	if err != nil {
		w.Fatal(err)
	}
	return secret
}

// as adds a cookie or a token to a request.
func as(r *http.Request, credential any) *http.Request {
	switch of := credential.(type) {
	case *http.Cookie:
		r.AddCookie(of)
	case string:
		r.Header.Set("Authorization", "Bearer "+of)
	}
	return r
}

// forgetLimits forgets what callers have used of their limits.
func (w *testWeb) forgetLimits() { w.server.table = w.server.newTable(w.audit) }
