// Package oidctest is an OpenID provider for tests: discovery, authorization with PKCE,
// tokens, and keys that change. Its mistakes can be chosen.
package oidctest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Client is a client that a provider knows.
type Client struct{ ID, Secret, Redirect string }

// Provider is a provider on a loopback address. Its fields may be changed between
// requests, under Lock.
type Provider struct {
	sync.Mutex
	Server  *httptest.Server
	Clients map[string]Client
	User    map[string]any // claims of who sits before every browser
	Asked   time.Time      // when that user was last asked for a password; zero: just now
	// changes the claims of an ID token; nil: they are right
	Change func(claims map[string]any)
	// makes an ID token in another way than by the present key; nil: it does not
	Sign func(p *Provider, claims map[string]any) string
	// says what it is; nil: the truth
	Describe func(about map[string]any)
	Paths    []string // that were called

	keys  []signingKey // the last one signs
	codes map[string]grant
}

// grant is what a code stands for.
type grant struct {
	client, redirect, challenge, nonce string
	fresh                              bool
}

// New starts a provider with a client. The caller closes its Server.
func New(c Client) *Provider {
	p := &Provider{Clients: map[string]Client{c.ID: c}, codes: map[string]grant{},
		User: map[string]any{"sub": "f81d4fae", "preferred_username": "ann"}}
	p.rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discover)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /jwks", p.jwks)
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Lock()
		p.Paths = append(p.Paths, r.URL.Path)
		p.Unlock()
		mux.ServeHTTP(w, r)
	}))
	return p
}

// Issuer returns the name of the provider.
func (p *Provider) Issuer() string { return p.Server.URL }

// Rotate makes a new key, and forgets the old ones.
func (p *Provider) Rotate() {
	p.Lock()
	defer p.Unlock()
	p.keys = nil
	p.rotate()
}

func (p *Provider) rotate() { p.keys = append(p.keys, newSigningKey(len(p.keys))) }

func (p *Provider) discover(w http.ResponseWriter, _ *http.Request) {
	p.Lock()
	defer p.Unlock()
	about := map[string]any{"issuer": p.Server.URL, "authorization_endpoint": p.Server.URL + "/authorize",
		"token_endpoint": p.Server.URL + "/token", "jwks_uri": p.Server.URL + "/jwks",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
		"code_challenge_methods_supported":      []string{"S256"}}
	if p.Describe != nil {
		p.Describe(about)
	}
	writeJSON(w, about)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// refuse answers as RFC 6749, section 5.2, has it.
func refuse(w http.ResponseWriter, code, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": why})
}

func randomText() string {
	b := make([]byte, 16)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// authorize gives the browser a code, as if its user had a session here.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.Lock()
	defer p.Unlock()
	q := r.URL.Query()
	c, ok := p.Clients[q.Get("client_id")]
	switch {
	case !ok || q.Get("redirect_uri") != c.Redirect:
		refuse(w, "invalid_request", "unknown client, or another redirect_uri")
		return
	case q.Get("response_type") != "code" || !strings.Contains(q.Get("scope"), "openid") ||
		q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(q.Get("nonce")) < 22 ||
		len(q.Get("state")) < 22:
		refuse(w, "invalid_request", "code flow, PKCE, state or nonce is missing")
		return
	}
	code := randomText()
	p.codes[code] = grant{c.ID, c.Redirect, q.Get("code_challenge"), q.Get("nonce"), q.Get("prompt") == "login"}
	back := url.Values{"state": {q.Get("state")}, "code": {code}, "iss": {p.Server.URL}}
	http.Redirect(w, r, c.Redirect+"?"+back.Encode(), http.StatusFound)
}

// token exchanges a code for an ID token, once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.Lock()
	defer p.Unlock()
	id, secret, _ := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	if c, ok := p.Clients[id]; !ok || c.Secret != secret {
		refuse(w, "invalid_client", "unknown client or wrong secret")
		return
	}
	code := r.PostFormValue("code")
	g, ok := p.codes[code]
	delete(p.codes, code)
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case !ok || g.client != id || g.redirect != r.PostFormValue("redirect_uri"):
		refuse(w, "invalid_grant", "unknown code, or of another client")
		return
	case base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge:
		refuse(w, "invalid_grant", "wrong code_verifier")
		return
	}
	writeJSON(w, map[string]any{"access_token": randomText(), "token_type": "Bearer", "expires_in": 300,
		"id_token": p.idToken(g)})
}

// idToken makes the ID token of a grant.
func (p *Provider) idToken(g grant) string {
	now := time.Now()
	asked := p.Asked
	if asked.IsZero() || g.fresh {
		asked = now
	}
	claims := map[string]any{"iss": p.Server.URL, "aud": g.client, "exp": now.Add(5 * time.Minute).Unix(),
		"iat": now.Unix(), "nonce": g.nonce, "auth_time": asked.Unix()}
	for name, value := range p.User {
		claims[name] = value
	}
	if p.Change != nil {
		p.Change(claims)
	}
	if p.Sign != nil {
		return p.Sign(p, claims)
	}
	return p.keys[len(p.keys)-1].sign(claims)
}

func (p *Provider) jwks(w http.ResponseWriter, _ *http.Request) {
	p.Lock()
	defer p.Unlock()
	var all []map[string]string
	for _, k := range p.keys {
		all = append(all, k.public())
	}
	writeJSON(w, map[string]any{"keys": all})
}

// Visit goes to an address of a provider as a browser does. It returns the query with
// which the browser is sent back.
func (p *Provider) Visit(address string) (url.Values, error) {
	client := p.Server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Get(address)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusFound {
		return nil, fmt.Errorf("the provider answers %s", answer.Status)
	}
	back, err := url.Parse(answer.Header.Get("Location"))
	if err != nil {
		return nil, err
	}
	return back.Query(), nil
}
