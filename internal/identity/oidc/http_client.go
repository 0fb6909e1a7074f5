package oidc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/roost-batch/roost/internal/identity/proof"
)

// Bounds on the talk with a provider.
const (
	requestTimeout = 10 * time.Second
	dialTimeout    = 5 * time.Second
	maxBody        = 1 << 20
)

// newHTTPClient returns the client for a provider. It follows no redirects, and connects
// to no address of this host or link, where services trust whoever reaches them.
func newHTTPClient(q *proof.Question) (*http.Client, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(q.Authorities) > 0 {
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(q.Authorities) {
			return nil, errors.New("the file of its authority has no certificate")
		}
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	if !q.Local {
		dialer.Control = refuseLocal
	}
	return &http.Client{
		Timeout: requestTimeout,
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it redirects to %s, which is not followed", r.URL.Redacted())
		},
		Transport: &strictTransport{local: q.Local, next: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: secure, TLSHandshakeTimeout: dialTimeout,
			MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		}},
	}, nil
}

// refuseLocal refuses addresses of this host and link. It sees what a name has resolved
// to, so that no name leads there.
func refuseLocal(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap()
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() {
		return fmt.Errorf("%s is an address of this host or link: if the provider is there, set local in its block", ip)
	}
	return nil
}

// strictTransport refuses what is not TLS, and bounds bodies.
type strictTransport struct {
	next  http.RoundTripper
	local bool
}

// RoundTrip implements http.RoundTripper.
func (t *strictTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !t.local {
		return nil, fmt.Errorf("%s is not an address of https", r.URL.Redacted())
	}
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = http.MaxBytesReader(nil, answer.Body, maxBody)
	return answer, nil
}
