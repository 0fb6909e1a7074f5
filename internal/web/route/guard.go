package route

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// contentPolicy permits what the daemon itself serves and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'"

// inlineStylePolicy is contentPolicy for a page whose script writes styles.
var inlineStylePolicy = strings.Replace(contentPolicy, "style-src 'self'", "style-src 'self' 'unsafe-inline'", 1)

// setSecurityHeaders sets what every answer has.
func setSecurityHeaders(h http.Header, isTLS bool) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if isTLS {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// checkHost refuses a request for another host. A page of another site whose name leads
// here (DNS rebinding) would otherwise act as its visitor.
func (t *Table) checkHost(r *http.Request) *Problem {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name != "" && slices.Contains(t.hosts, name) {
		return nil
	}
	return NewProblem(http.StatusMisdirectedRequest, "this server is not the one of that host name",
		"add the name to names in the web block of the node file")
}

// checkOrigin refuses writes that a page of another site makes. CrossOriginProtection
// lets requests pass that say nothing of their origin, because no browser makes them;
// those are refused here if they have a cookie.
func (t *Table) checkOrigin(r *http.Request) *Problem {
	if IsSafe(r.Method) {
		return nil
	}
	const cure = "send it from a page of this server, or with an API token and no cookie"
	if err := t.origins.Check(r); err != nil {
		return NewProblem(http.StatusForbidden, "the request comes from a page of another site", cure)
	}
	if _, err := r.Cookie(t.cookie); err != nil {
		return nil
	}
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return NewProblem(http.StatusForbidden, "a write with a cookie has to say where it comes from", cure)
	}
	return nil
}

// CheckWebSocketOrigin refuses the handshake of a WebSocket unless a page of this server
// makes it. It is a GET and has the cookie, whichever page makes it.
func (c *Call) CheckWebSocketOrigin() *Problem {
	scheme := "http"
	if c.table.Secure {
		scheme = "https"
	}
	origin, err := url.Parse(c.Request.Header.Get("Origin"))
	site := c.Request.Header.Get("Sec-Fetch-Site")
	if err != nil || origin.Scheme != scheme || !strings.EqualFold(origin.Host, c.Request.Host) ||
		site != "" && site != "same-origin" {
		return NewProblem(http.StatusForbidden, "the request does not come from a page of this server",
			"open the page of the terminal")
	}
	return nil
}

// clientAddress returns whom a request comes from. Only a reverse proxy on a unix socket
// is believed what it says of that.
func clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err == nil {
		return host
	}
	all := strings.Split(r.Header.Get("X-Forwarded-For"), ",")
	last := strings.TrimSpace(all[len(all)-1]) // the one that the proxy has added
	if ip := net.ParseIP(last); ip != nil {
		return ip.String()
	}
	return "proxy"
}
