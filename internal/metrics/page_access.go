package metrics

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// pageAccess decides who may read the metrics of a daemon.
type pageAccess struct {
	hosts    map[string]bool // that a request may name, in lower case
	tokens   *tokenFile      // nil: certificates only
	hasUsers bool            // the page of users is served
}

// Paths of the pages.
const (
	metricsPath = "/metrics"
	usersPath   = "/metrics/users"
)

func newPageAccess(node *config.Node, address string) (*pageAccess, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w: %w", roost.BadConfig, err)
	}
	a := &pageAccess{hosts: map[string]bool{}}
	for _, name := range append([]string{host, node.Name}, node.Metrics.Names...) {
		a.hosts[strings.ToLower(name)] = true
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		a.hosts["localhost"] = true
	}
	if file := node.Metrics.TokenFile; file != "" {
		a.tokens = &tokenFile{path: file}
		if err := a.tokens.read(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// refuse returns the status and the text with which a request is refused, 0 if it is not.
func (a *pageAccess) refuse(r *http.Request) (status int, text string) {
	if !a.hosts[hostName(r.Host)] {
		return http.StatusMisdirectedRequest, "this is not the host that the request names: the names block of " +
			"metrics in the node file lists more names, see roost-node(5)"
	}
	if !a.isAuthenticated(r) {
		return http.StatusUnauthorized, "a bearer token or a certificate of the pool is needed, see roost-metrics(7)"
	}
	switch {
	case r.URL.Path == metricsPath, r.URL.Path == usersPath && a.hasUsers:
	case r.URL.Path == usersPath:
		return http.StatusNotFound, "there are no metrics by user here: the schedd serves them where the metrics " +
			"block of the node file has users = true, see roost-node(5)"
	default:
		return http.StatusNotFound, "only /metrics is here"
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return http.StatusMethodNotAllowed, "only GET and HEAD are allowed"
	}
	return 0, ""
}

// isAuthenticated reports whether the client has shown a certificate, which the handshake
// has checked, or sends a token.
func (a *pageAccess) isAuthenticated(r *http.Request) bool {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return true
	}
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return ok && strings.EqualFold(scheme, "Bearer") && a.tokens != nil && a.tokens.has(token)
}

// hostName returns the name of a Host header, without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// Bounds of a token file.
const (
	minTokenBytes  = 32
	maxTokenBytes  = 512
	maxTokens      = 16
	maxTokenFile   = 16 << 10
	tokenRereadGap = time.Second
)

// tokenFile is the file with the tokens of those who may read, one a line. It is read
// again when it has changed.
type tokenFile struct {
	path string

	mu       sync.Mutex
	info     os.FileInfo
	lookedAt time.Time
	tokens   [][sha256.Size]byte
}

// read reads the file, which nobody but its owner and its group may read.
func (f *tokenFile) read() error {
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("metrics: token_file: %w: %w", roost.BadConfig, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("metrics: token_file: %w: %w", roost.BadConfig, err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("metrics: token_file %s: %w: everybody may use it (%v): chmod o= %s", f.path, roost.BadConfig,
			info.Mode().Perm(), f.path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxTokenFile+1))
	if err != nil {
		return fmt.Errorf("metrics: token_file: %w: %w", roost.BadConfig, err)
	}
	tokens, err := parseTokens(text)
	if err != nil {
		return fmt.Errorf("metrics: token_file %s: %w: %w", f.path, roost.BadConfig, err)
	}
	f.info, f.tokens = info, tokens
	return nil
}

// parseTokens reads tokens, one a line. Errors never contain what is in the file.
func parseTokens(text []byte) (all [][sha256.Size]byte, err error) {
	if len(text) > maxTokenFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxTokenFile)
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		token := bytes.TrimSpace(line)
		switch {
		case len(token) == 0:
		case len(token) < minTokenBytes || len(token) > maxTokenBytes:
			return nil, fmt.Errorf("line %d: a token has %d to %d characters: openssl rand -hex 32 makes one", i+1,
				minTokenBytes, maxTokenBytes)
		case bytes.ContainsAny(token, " \t\x00"):
			return nil, fmt.Errorf("line %d: a token has no blanks", i+1)
		case len(all) == maxTokens:
			return nil, fmt.Errorf("it has more than %d tokens", maxTokens)
		default:
			all = append(all, sha256.Sum256(token))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it has no token: openssl rand -hex 32 makes one")
	}
	return all, nil
}

// has reports whether a token is in the file. The time that it takes does not depend on
// the token.
func (f *tokenFile) has(token string) bool {
	sum := sha256.Sum256([]byte(token))
	found := 0
	for _, known := range f.current(time.Now()) {
		found |= subtle.ConstantTimeCompare(sum[:], known[:])
	}
	return found == 1
}

// current returns the tokens of the file as it is now. With a file that cannot be read or
// is invalid nobody has a token.
func (f *tokenFile) current(now time.Time) [][sha256.Size]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.lookedAt) < tokenRereadGap {
		return f.tokens
	}
	f.lookedAt = now
	info, err := os.Stat(f.path)
	if err == nil && f.info != nil && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) &&
		info.Size() == f.info.Size() && info.Mode() == f.info.Mode() {
		return f.tokens
	}
	if err := f.read(); err != nil {
		f.info, f.tokens = nil, nil
	}
	return f.tokens
}
