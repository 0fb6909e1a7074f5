package node

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/loginfile"
	"github.com/roost-batch/roost/internal/identity/proof"
)

// webProof is what a command shows the web daemon about its user. One field is set.
type webProof struct {
	token string // of the schedd on this host
	key   *signedChallenge
}

// signedChallenge is a challenge of the web daemon, signed with the key of a login.
type signedChallenge struct {
	Certificate []byte `json:"certificate"`
	Challenge   []byte `json:"challenge"`
	Host        string `json:"host"`
	Signature   []byte `json:"signature"`
}

// body returns the body of a login.
func (p *webProof) body() map[string]any {
	if p.key != nil {
		return map[string]any{"key": p.key}
	}
	return map[string]any{"token": p.token}
}

// proveToWeb returns a client of the web daemon with a proof of who the user is. That is
// the kernel's on this host, or with --remote a login's that was made here.
func proveToWeb(c *frame.Invocation, validity time.Duration) (w *webClient, p webProof, err error) {
	if remote := c.StringFlag("remote"); remote != "" {
		return proveWithKey(c, remote)
	}
	made, err := webToken(c, validity)
	return &webClient{c: c, url: made.GetUrl()}, webProof{token: made.GetToken()}, err
}

// proveWithKey has the key of a login sign a challenge.
func proveWithKey(c *frame.Invocation, remote string) (w *webClient, p webProof, err error) {
	u, err := url.Parse(remote)
	if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" ||
		u.Scheme != "https" && !(u.Scheme == "http" && isLoopbackHost(u.Hostname())) {
		return nil, p, frame.UsageErrorf("--remote: %q is not an address as in https://roost.example.org", remote)
	}
	w = &webClient{c: c, url: u.Scheme + "://" + u.Host}
	if err := w.trust(c.StringFlag("authority")); err != nil {
		return nil, p, err
	}
	var asked struct {
		Node      string
		Challenge []byte
	}
	if err := w.call("GET", "/v1/session/challenge", nil, &asked); err != nil {
		return nil, p, err
	}
	dir, err := loginfile.Dir(c.Getenv)
	if err != nil {
		return nil, p, err
	}
	entry, err := login.Load(dir, asked.Node)
	if errors.Is(err, roost.NotFound) {
		return nil, p, frame.WithHint(err, fmt.Sprintf("on %s run roost token --user, and here the line that it prints",
			asked.Node))
	}
	if err != nil {
		return nil, p, err
	}
	key, err := x509.ParsePKCS8PrivateKey(entry.Key)
	private, ok := key.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, p, fmt.Errorf("login at %s: %w: its key cannot be read", asked.Node, roost.BadConfig)
	}
	p.key = &signedChallenge{Certificate: entry.Certificate, Challenge: asked.Challenge, Host: u.Hostname(),
		Signature: ed25519.Sign(private, proof.Statement(u.Hostname(), asked.Challenge))}
	return w, p, nil
}

func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// trust sets whose certificate the web daemon has. It follows no redirects: the signature
// is for this host.
func (w *webClient) trust(file string) error {
	w.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--authority: %w: %w", roost.NoInput, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return fmt.Errorf("--authority: %w: %s has no certificate in PEM", roost.BadConfig, file)
	}
	w.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		Proxy: http.ProxyFromEnvironment}
	return nil
}
