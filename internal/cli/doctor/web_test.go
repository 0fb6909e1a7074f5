package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/config"
)

// expect compares a finding with its level and a part of its text. What is wrong has a
// cure.
func expect(t *testing.T, what string, f checkResult, l checkLevel, text string) {
	t.Helper()
	if f.Level != l || !strings.Contains(f.Text, text) || (l != levelOK) != (f.Hint != "") {
		t.Errorf("%s: got %+v, want %s and %q", what, f, l, text)
	}
}

// TestWebAddress checks a server that looks at Host, one that does not, and none.
func TestWebAddress(t *testing.T) {
	strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasPrefix(q.Host, "127.0.0.1:") {
			w.WriteHeader(http.StatusMisdirectedRequest)
		}
	}))
	defer strict.Close()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer other.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct {
		server *httptest.Server
		level  checkLevel
		text   string
	}{{strict, levelOK, "answers, for 127.0.0.1, localhost"}, {other, levelError, "roost-doctor.invalid"},
		{gone, levelError, "does not answer"}} {
		addr := strings.TrimPrefix(c.server.URL, "http://")
		w := &config.WebSettings{Listen: []string{addr}, URL: c.server.URL}
		expect(t, c.text, checkWebAddress(t.Context(), w, addr), c.level, c.text)
	}
}

// certificateFor writes a certificate of pages and its key.
func certificateFor(t *testing.T, name string, from, to time.Time) *config.WebSettings {
	t.Helper()
	dir := t.TempDir()
	w := &config.WebSettings{URL: "https://roost.example.org", Certificate: filepath.Join(dir, "cert.pem"),
		Key: filepath.Join(dir, "key.pem")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(err,
		os.WriteFile(w.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(w.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWebCertificate checks certificates that are good, end soon, have ended, and are for
// another name.
func TestWebCertificate(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	for _, c := range []struct {
		name     string
		from, to time.Duration
		level    checkLevel
		text     string
	}{
		{"roost.example.org", -day, 90 * day, levelOK, "is good until"},
		{"roost.example.org", -day, 3 * day, levelWarning, "ends in 2d"},
		{"roost.example.org", -9 * day, -day, levelError, "has ended"},
		{"roost.example.org", day, 9 * day, levelError, "not good before"},
		{"other.example.org", -day, 90 * day, levelError, "is not for roost.example.org"},
	} {
		found := checkWebCertificate(certificateFor(t, c.name, now.Add(c.from), now.Add(c.to)), now)
		if len(found) == 0 {
			t.Fatalf("%s: nothing was found", c.text)
		}
		expect(t, c.text, found[len(found)-1], c.level, c.text)
	}
	broken := certificateFor(t, "roost.example.org", now, now.Add(90*day))
	if err := os.WriteFile(broken.Key, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, "a broken key", checkWebCertificate(broken, now)[0], levelError, "PEM")
	if found := checkWebCertificate(&config.WebSettings{URL: "http://127.0.0.1:1"}, now); found != nil {
		t.Errorf("without a certificate: %+v", found)
	}
}

// TestProviderChecks checks providers that are well, call themselves otherwise, redirect,
// have another clock, and are away.
func TestProviderChecks(t *testing.T) {
	var says func(w http.ResponseWriter, issuer string)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		says(w, "http://"+q.Host)
	}))
	defer provider.Close()
	accounts := filepath.Join(t.TempDir(), "accounts")
	if err := os.WriteFile(accounts, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	document := func(w http.ResponseWriter, issuer string) {
		fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":"x","jwks_uri":"y"}`, issuer)
	}
	p := config.OIDCProvider{Name: "university", Issuer: provider.URL, Accounts: accounts}
	for _, c := range []struct {
		level checkLevel
		text  string
		says  func(w http.ResponseWriter, issuer string)
	}{
		{levelOK, "answers", document},
		{levelError, "calls itself", func(w http.ResponseWriter, _ string) { document(w, "https://evil.example") }},
		{levelError, "names no token endpoint", func(w http.ResponseWriter, issuer string) {
			fmt.Fprintf(w, `{"issuer":%q}`, issuer)
		}},
		{levelError, "404", func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusNotFound) }},
		{levelError, "redirects", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusFound)
		}},
		{levelError, "differ by", func(w http.ResponseWriter, issuer string) {
			w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			document(w, issuer)
		}},
	} {
		says = c.says
		expect(t, c.text, checkProvider(t.Context(), &p, time.Now), c.level, c.text)
	}
	gone := p
	gone.Issuer = "http://127.0.0.1:1"
	expect(t, "a provider that is away", checkProvider(t.Context(), &gone, time.Now), levelError, "cannot be reached")
	gone = p
	gone.Accounts = "/nowhere"
	expect(t, "no accounts", checkProvider(t.Context(), &gone, time.Now), levelError, "/nowhere")
}

// TestPasswordFiles checks the program and the service of PAM.
func TestPasswordFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "roost-pam")
	expect(t, "no program", checkPasswordProgram(path), levelError, "not there")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for mode, text := range map[os.FileMode]string{0o755: path, 0o777: "others can write", 0o644: "cannot be run",
		0o755 | os.ModeSetuid: "gives its account"} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		want := levelError
		if mode == 0o755 {
			want = levelOK
		}
		expect(t, mode.String(), checkPasswordProgram(path), want, text)
	}
	w := &config.WebSettings{PAMService: "roost", PAMDir: dir}
	found := checkPasswords(w)
	expect(t, "no service", found[len(found)-1], levelError, "the service is not there")
	if found := checkPasswords(&config.WebSettings{}); found != nil {
		t.Errorf("without PAM: %+v", found)
	}
}

// TestAccountantFindings checks feeds that are read, late, broken, and have gaps.
func TestAccountantFindings(t *testing.T) {
	now := time.Now()
	complete := accounting.Millis(now.Add(-time.Second).UnixMilli())
	for _, c := range []struct {
		line  query.SourceLine
		level checkLevel
		text  string
	}{
		{query.SourceLine{Host: "n1", Complete: complete}, levelOK, "has all of 1 schedd"},
		{query.SourceLine{Host: "n1", Complete: complete - 600_000}, levelWarning, "10m behind the schedd n1"},
		{query.SourceLine{Host: "n1", Complete: complete, Error: "refused"}, levelWarning, "cannot be read: refused"},
		{query.SourceLine{Host: "n1", Complete: complete, Gaps: 2}, levelWarning, "gaps that are not filled: 2"},
		{query.SourceLine{Host: "n1", Complete: complete, Skew: -120_000}, levelWarning, "differ by"},
		{query.SourceLine{Host: "n1", Complete: complete, Refused: 3}, levelWarning, "refused 3 entries"},
	} {
		found := sourceFindings([]query.SourceLine{c.line}, now)
		expect(t, c.text, found[0], c.level, c.text)
	}
	dir := t.TempDir()
	found := checkAccountStore(&config.AccountantSettings{Dir: dir})
	if found[0].Check != accountsCheck || !strings.Contains(found[0].Text, "SQLite in "+dir) {
		t.Errorf("got %+v", found)
	}
	gone := checkAccountStore(&config.AccountantSettings{Dir: dir + "/x"})
	expect(t, "no directory", gone[0], levelWarning, "no such")
	if _, ok := checkFeed(dir); ok {
		t.Error("a schedd without a feed has one")
	}
	feed := filepath.Join(dir, "feed.log", "1")
	if err := errors.Join(os.Mkdir(filepath.Dir(feed), 0o700), os.WriteFile(feed, nil, 0o600),
		os.Truncate(feed, int64(feedWarning)+1)); err != nil {
		t.Fatal(err)
	}
	f, _ := checkFeed(dir)
	expect(t, "a long feed", f, levelWarning, "512MiB")
}
