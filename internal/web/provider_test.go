package web

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/oidc/oidctest"
)

// newProvider starts an OpenID provider and makes it known under some names.
func newProvider(w *testWeb, names ...string) *oidctest.Provider {
	w.Helper()
	name := names[0]
	p := oidctest.New(oidctest.Client{ID: "roost", Secret: "planted-secret",
		Redirect: testURL + "/login/" + name + "/callback"})
	w.Cleanup(p.Server.Close)
	files := map[string]string{"accounts": "# who is who\nann ann\nbob@example.org bob\n", "secret": "planted-secret\n",
		"ca": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Server.Certificate().Raw}))}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(w.dir, name+"."+file), []byte(text), 0o600); err != nil {
			w.Fatal(err)
		}
	}
	w.server.node.Web.Providers = append(w.server.node.Web.Providers, config.OIDCProvider{Name: name,
		Title: "The University", Issuer: p.Issuer(), Client: "roost", SecretFile: filepath.Join(w.dir, name+".secret"),
		Claim: "preferred_username", Accounts: filepath.Join(w.dir, name+".accounts"), Scopes: []string{"profile"},
		Authority: filepath.Join(w.dir, name+".ca"), Local: true})
	w.forgetLimits()
	return p
}

// begin begins a login, and returns the cookie of the browser and where it is sent.
func (w *testWeb) begin(provider, query string) (cookie *http.Cookie, address string) {
	w.Helper()
	w.forgetLimits()
	q := w.request("GET", "/login/"+provider+query, "")
	q.Header.Set("Sec-Fetch-Site", "none")
	answer := w.do(q)
	if answer.Code != http.StatusSeeOther || len(answer.Result().Cookies()) != 1 {
		w.Fatalf("begin: %d %s", answer.Code, answer.Body)
	}
	return answer.Result().Cookies()[0], answer.Header().Get("Location")
}

// comeBack brings the answer of a provider, as the page of the callback does.
func (w *testWeb) comeBack(provider string, cookie *http.Cookie, back url.Values) *httptest.ResponseRecorder {
	w.Helper()
	w.forgetLimits()
	q := w.request("POST", "/login/"+provider+"/callback", back.Encode())
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if cookie != nil {
		q.AddCookie(cookie)
	}
	return w.do(q)
}

// sessionCookie returns the cookie of a new session, or nil.
func sessionCookie(answer *httptest.ResponseRecorder) *http.Cookie {
	for _, c := range answer.Result().Cookies() {
		if c.Name == "roost" && c.Value != "" {
			return c
		}
	}
	return nil
}

// TestProviderLogin logs in by an OpenID provider, as a browser does it.
func TestProviderLogin(t *testing.T) {
	w := newTestWeb(t)
	p := newProvider(w, "university")
	cookie, address := w.begin("university", "")
	if cookie.SameSite != http.SameSiteLaxMode || !cookie.HttpOnly || cookie.MaxAge != 600 {
		t.Errorf("the cookie is %v", cookie)
	}
	u, _ := url.Parse(address)
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if v := u.Query().Get(name); len(v) != 43 || strings.Contains(cookie.Value, v) {
			t.Errorf("%s is %q", name, v)
		}
	}
	back, err := p.Visit(address)
	if err != nil {
		t.Fatal(err)
	}
	page := w.request("GET", "/login/university/callback?"+back.Encode(), "")
	page.Header.Set("Sec-Fetch-Site", "cross-site")
	shown := w.do(as(page, cookie))
	if shown.Code != http.StatusOK || !strings.Contains(shown.Body.String(), back.Get("code")) ||
		sessionCookie(shown) != nil {
		t.Errorf("the page of the callback: %d %s", shown.Code, shown.Body)
	}
	answer := w.comeBack("university", cookie, back)
	s := sessionCookie(answer)
	if answer.Code != http.StatusSeeOther || s == nil || s.SameSite != http.SameSiteStrictMode {
		t.Fatalf("login: %d %s", answer.Code, answer.Body)
	}
	text := w.do(as(w.request("GET", "/v1/session", ""), s)).Body.String()
	if !strings.Contains(text, `"user":"ann"`) || !strings.Contains(text, `"way":"oidc"`) ||
		!strings.Contains(text, `"fresh":true`) {
		t.Errorf("the session is %s", text)
	}
	if again := w.comeBack("university", cookie, back); again.Code != http.StatusForbidden {
		t.Errorf("the same answer again: %d", again.Code)
	}
	for name, text := range map[string]string{"log": w.logged.String(), "audit": w.audit.String()} {
		for _, secret := range []string{back.Get("code"), cookie.Value, "planted-secret", u.Query().Get("nonce")} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s has %q", name, secret)
			}
		}
	}
	if answer := w.do(as(w.request("DELETE", "/v1/session", ""), s)); answer.Code != 204 || w.status(s) != 401 {
		t.Errorf("logout: %d", answer.Code)
	}
}

// TestProviderAttacks tries answers of a provider that are not valid. Each is refused
// with a reason, and nobody is logged in.
func TestProviderAttacks(t *testing.T) {
	w := newTestWeb(t)
	p := newProvider(w, "university")
	p.Clients["other"] = oidctest.Client{ID: "other", Secret: "s", Redirect: "https://other.example/callback"}
	claim := func(name string, value any) func(map[string]any) {
		return func(claims map[string]any) { claims[name] = value }
	}
	now := time.Now()
	for name, attack := range map[string]struct {
		change func(map[string]any)
		sign   func(*oidctest.Provider, map[string]any) string
		want   string
	}{
		"wrong issuer":       {claim("iss", "https://evil.example"), nil, "different provider"},
		"wrong audience":     {claim("aud", "other"), nil, "expected audience"},
		"two audiences":      {claim("aud", []string{"roost", "other"}), nil, "another client"},
		"another party":      {claim("azp", "other"), nil, "another client"},
		"wrong nonce":        {claim("nonce", strings.Repeat("A", 43)), nil, "nonce differs"},
		"no nonce":           {func(c map[string]any) { delete(c, "nonce") }, nil, "nonce differs"},
		"expired":            {claim("exp", now.Add(-2*time.Minute).Unix()), nil, "expired"},
		"old token":          {claim("iat", now.Add(-time.Hour).Unix()), nil, "before the login began"},
		"from the future":    {claim("iat", now.Add(time.Hour).Unix()), nil, "from the future"},
		"not yet":            {claim("nbf", now.Add(time.Hour).Unix()), nil, "nbf"},
		"no signature":       {nil, oidctest.SignNone, "not valid"},
		"public key as HMAC": {nil, oidctest.SignHMAC, "not valid"},
		"key of a stranger":  {nil, oidctest.SignForeign, "not valid"},
		"unknown user":       {claim("preferred_username", "eve"), nil, "no account here has that"},
		"a comment":          {claim("preferred_username", "# who is"), nil, "no account here has that"},
		"user by address":    {claim("preferred_username", "bob"), nil, "no account here has that"},
		"a list as name":     {claim("preferred_username", []string{"ann"}), nil, "no claim"},
		"two lines as name":  {claim("preferred_username", "eve\nann"), nil, "no claim"},
	} {
		p.Change, p.Sign = attack.change, attack.sign
		cookie, address := w.begin("university", "")
		back, err := p.Visit(address)
		if err != nil {
			t.Fatal(err)
		}
		answer := w.comeBack("university", cookie, back)
		if answer.Code != http.StatusForbidden || sessionCookie(answer) != nil ||
			!strings.Contains(w.logged.String(), attack.want) {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
		w.logged.Reset()
	}
	if w.server.store.Count() != 0 {
		t.Errorf("%d sessions are open", w.server.store.Count())
	}
}

// TestProviderMixUp brings codes, states and cookies together that belong to others.
func TestProviderMixUp(t *testing.T) {
	w := newTestWeb(t)
	p, evil := newProvider(w, "university"), newProvider(w, "institute")
	evil.User["preferred_username"] = "ann"
	first, firstAddress := w.begin("university", "")
	second, secondAddress := w.begin("university", "")
	back, _ := p.Visit(firstAddress)
	other, _ := p.Visit(secondAddress)
	mixed := url.Values{"state": {other.Get("state")}, "code": {back.Get("code")}}
	for name, answer := range map[string]*httptest.ResponseRecorder{
		"no cookie":                w.comeBack("university", nil, back),
		"code of another browser":  w.comeBack("university", second, mixed), // PKCE
		"state of another browser": w.comeBack("university", first, other),
		"both of them, later":      w.comeBack("university", first, back),
		"a forged cookie": w.comeBack("university", &http.Cookie{Name: "roost-login",
			Value: strings.Repeat("QUFB", 60)}, other),
	} {
		if answer.Code != http.StatusForbidden || sessionCookie(answer) != nil {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
	}
	third, thirdAddress := w.begin("university", "")
	back, _ = p.Visit(thirdAddress)
	if answer := w.comeBack("institute", third, back); answer.Code != http.StatusForbidden {
		t.Errorf("the callback of another provider: %d", answer.Code)
	}
	fourth, fourthAddress := w.begin("university", "")
	back, _ = p.Visit(fourthAddress)
	back.Set("iss", evil.Issuer())
	if answer := w.comeBack("university", fourth, back); answer.Code != http.StatusForbidden {
		t.Errorf("the issuer of another provider: %d", answer.Code)
	}
	// a code that the provider gave to another client is of no use
	p.Clients["other"] = oidctest.Client{ID: "other", Secret: "s", Redirect: "https://other.example/callback"}
	fifth, fifthAddress := w.begin("university", "")
	u, _ := url.Parse(fifthAddress)
	q := u.Query()
	q.Set("client_id", "other")
	q.Set("redirect_uri", "https://other.example/callback")
	u.RawQuery = q.Encode()
	back, err := p.Visit(u.String())
	if err != nil {
		t.Fatal(err)
	}
	if answer := w.comeBack("university", fifth, back); answer.Code != http.StatusForbidden ||
		!strings.Contains(answer.Body.String(), "refuses the code") {
		t.Errorf("a code of another client: %d %s", answer.Code, answer.Body)
	}
	if w.server.store.Count() != 0 {
		t.Errorf("%d sessions are open", w.server.store.Count())
	}
}

// TestProviderFresh checks that only a provider that has asked its user now makes a
// session fresh.
func TestProviderFresh(t *testing.T) {
	w := newTestWeb(t)
	p := newProvider(w, "university")
	p.Asked = time.Now().Add(-2 * time.Hour)
	for query, want := range map[string]string{"": `"fresh":false`, "?fresh=1": `"fresh":true`} {
		cookie, address := w.begin("university", query)
		back, err := p.Visit(address)
		if err != nil {
			t.Fatal(err)
		}
		s := sessionCookie(w.comeBack("university", cookie, back))
		if text := w.do(as(w.request("GET", "/v1/session", ""), s)).Body.String(); !strings.Contains(text, want) {
			t.Errorf("%q: %s has no %s", query, text, want)
		}
	}
	// it says that it was asked again, and has not asked
	p.Change = func(claims map[string]any) { claims["auth_time"] = p.Asked.Unix() }
	cookie, address := w.begin("university", "?fresh=1")
	back, _ := p.Visit(address)
	if answer := w.comeBack("university", cookie, back); answer.Code != http.StatusForbidden {
		t.Errorf("an old proof: %d", answer.Code)
	}
}

// TestProviderKeys changes the keys of the provider, and its clock a little.
func TestProviderKeys(t *testing.T) {
	w := newTestWeb(t)
	p := newProvider(w, "university")
	for _, skew := range []time.Duration{0, 40 * time.Second, -40 * time.Second} {
		p.Rotate()
		p.Change = func(claims map[string]any) {
			claims["iat"] = time.Now().Add(skew).Unix()
			claims["exp"] = time.Now().Add(skew).Add(10 * time.Second).Unix()
		}
		cookie, address := w.begin("university", "")
		back, err := p.Visit(address)
		if err != nil {
			t.Fatal(err)
		}
		if answer := w.comeBack("university", cookie, back); sessionCookie(answer) == nil {
			t.Errorf("skew %v: %d %s", skew, answer.Code, answer.Body)
		}
	}
}

// TestProviderDown checks that a provider that is away has a clear page, and that the
// other ways work.
func TestProviderDown(t *testing.T) {
	w := newTestWeb(t)
	p := newProvider(w, "university")
	p.Server.Close()
	q := w.request("GET", "/login/university", "")
	q.Header.Set("Accept", "text/html")
	answer := w.do(q)
	if text := answer.Body.String(); answer.Code != http.StatusServiceUnavailable || !strings.Contains(text, "<h1>") ||
		!strings.Contains(text, "university") || !strings.Contains(text, "roost web login") ||
		!strings.Contains(text, `href="/login"`) {
		t.Errorf("got %d %s", answer.Code, text)
	}
	if w.status(w.logIn("ann")) != http.StatusOK {
		t.Error("the other way does not work")
	}
	denied := w.request("GET", "/login/university/callback?error=access_denied&error_description=%3Cb%3Eno", "")
	denied.Header.Set("Accept", "text/html")
	if answer := w.do(denied); answer.Code != http.StatusForbidden || strings.Contains(answer.Body.String(), "<b>no") {
		t.Errorf("a refusal: %d %s", answer.Code, answer.Body)
	}
}

// TestW8ProviderAddresses checks that the schedd speaks to the provider of the node file
// alone. That is not on this host or link, wherever a name leads.
func TestW8ProviderAddresses(t *testing.T) {
	w := newTestWeb(t)
	p := newProvider(w, "university")
	of := &w.server.node.Web.Providers[0]
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("it was called")
	}))
	t.Cleanup(inner.Close)
	at := func(host string) string { return strings.Replace(p.Issuer(), "127.0.0.1", host, 1) }
	says := func(name, value string) func(map[string]any) {
		return func(about map[string]any) { about[name] = value }
	}
	for name, change := range map[string]func(){
		"loopback":      func() { of.Local = false },
		"name of it":    func() { of.Local, of.Issuer = false, at("localhost") },
		"mapped":        func() { of.Local, of.Issuer = false, at("[::ffff:127.0.0.1]") },
		"any":           func() { of.Local, of.Issuer = false, at("0.0.0.0") },
		"link-local":    func() { of.Local, of.Issuer = false, "https://169.254.169.254" },
		"link-local 6":  func() { of.Local, of.Issuer = false, "https://[fe80::1%25lo]" },
		"no TLS":        func() { of.Local, of.Issuer = false, "http://192.0.2.1" },
		"other issuer":  func() { p.Describe = says("issuer", "https://evil.example") },
		"no TLS behind": func() { p.Describe = says("authorization_endpoint", "javascript:alert(1)") },
		"a redirect": func() {
			of.Issuer = httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusFound)).URL
		},
	} {
		of.Local, of.Issuer, p.Describe = true, p.Issuer(), nil
		change()
		before := len(p.Paths)
		w.forgetLimits()
		answer := w.do(w.request("GET", "/login/university", ""))
		if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Location") != "" {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
		if !of.Local && len(p.Paths) != before {
			t.Errorf("%s: the provider was called: %v", name, p.Paths[before:])
		}
	}
}
