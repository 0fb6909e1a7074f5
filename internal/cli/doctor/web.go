package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
)

const (
	webCheck       = "web"
	webTimeout     = 5 * time.Second
	certificateAge = 7 * 24 * time.Hour // before its end, somebody should know
)

// examineWeb checks the web daemon of this node. That is its addresses, its certificate,
// the names by which it is asked, and the ways to log in.
func examineWeb(c *frame.Invocation, n *config.Node) (findings []checkResult) {
	if n == nil || n.Web == nil {
		return nil
	}
	for _, addr := range n.Web.Listen {
		findings = append(findings, checkWebAddress(c.Context, n.Web, addr))
	}
	findings = append(findings, checkWebCertificate(n.Web, c.Now())...)
	if n.Web.User == "" && isRootOwned(n.Dir) && n.TLS != nil {
		findings = append(findings, checkResult{webCheck, levelWarning,
			"the web daemon has root's account, though no rights of it",
			"make an account for it, and name it in the web block: user = \"roost-web\""})
	}
	for i := range n.Web.Providers {
		findings = append(findings, checkProvider(c.Context, &n.Web.Providers[i], c.Now))
	}
	return append(findings, checkPasswords(n.Web)...)
}

// checkWebAddress asks an address of the daemon whether it serves. The daemon has to
// refuse to be asked by another host's name.
func checkWebAddress(ctx context.Context, w *config.WebSettings, addr string) checkResult {
	ctx, cancel := context.WithTimeout(ctx, webTimeout)
	defer cancel()
	u, err := url.Parse(w.URL)
	if err != nil {
		return checkResult{webCheck, levelError, err.Error(), ""}
	}
	network, path := "tcp", addr
	if socket, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, path = "unix", socket
	}
	scheme := "http"
	if w.Certificate != "" && network == "tcp" {
		scheme = "https"
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, path)
		},
		// the certificate is checked by itself, with its cure
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: u.Hostname()}}}
	for host, want := range map[string]int{u.Host: http.StatusOK,
		"roost-doctor.invalid": http.StatusMisdirectedRequest} {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+u.Host+"/healthz", nil)
		if err != nil {
			return checkResult{webCheck, levelError, err.Error(), ""}
		}
		q.Host = host
		answer, err := client.Do(q)
		if err != nil {
			return checkResult{webCheck, levelError, fmt.Sprintf("%s does not answer: %v", addr, err),
				"its master restarts it; if it does not come back, look at web.log in the pool's log directory"}
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			return checkResult{webCheck, levelError, fmt.Sprintf("%s answers a request for %s with %s", addr, host,
				answer.Status), "is it another program that has the address? if not, see names in roost-node(5)"}
		}
	}
	return checkResult{webCheck, levelOK,
		fmt.Sprintf("%s answers, for %s", addr, strings.Join(w.HostNames(), ", ")), ""}
}

// checkWebCertificate checks how long the certificate of the pages is good, and for whom.
func checkWebCertificate(w *config.WebSettings, now time.Time) (findings []checkResult) {
	const check = "certificate"
	if w.Certificate == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(w.Certificate, w.Key)
	var leaf *x509.Certificate
	if err == nil {
		leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	if err != nil {
		return []checkResult{{check, levelError, firstLine(err.Error()),
			"the web daemon cannot start with it: write certificate and key in PEM; ask as root if they are root's"}}
	}
	f := checkResult{check, levelOK, fmt.Sprintf("%s is good until %s", w.Certificate,
		leaf.NotAfter.UTC().Format(time.DateOnly)), ""}
	const renew = "renew it, and restart the web daemon"
	switch left := leaf.NotAfter.Sub(now); {
	case left <= 0:
		f = checkResult{check, levelError, fmt.Sprintf("%s has ended %s ago", w.Certificate, document.SpanText(-left)),
			renew}
	case now.Before(leaf.NotBefore):
		f = checkResult{check, levelError, fmt.Sprintf("%s is not good before %s", w.Certificate,
			leaf.NotBefore.UTC().Format(time.RFC3339)), "compare this machine's clock"}
	case left < certificateAge:
		f = checkResult{check, levelWarning,
			fmt.Sprintf("%s ends in %s", w.Certificate, document.SpanText(left)), renew}
	}
	findings = append(findings, f)
	u, err := url.Parse(w.URL)
	if err != nil {
		return findings
	}
	for _, name := range append([]string{u.Hostname()}, w.Names...) {
		if leaf.VerifyHostname(name) != nil {
			findings = append(findings, checkResult{check, levelError,
				fmt.Sprintf("%s is not for %s, and browsers warn their users", w.Certificate, name),
				"have the name in it, or take it out of url and names in the web block"})
		}
	}
	return findings
}
