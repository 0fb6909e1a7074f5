package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// WebSettings configures the web daemon on this node, which serves pages and the HTTP
// API.
type WebSettings struct {
	// host:port, or "unix:/path" for a reverse proxy on this host, which alone may say in
	// X-Forwarded-For whom a request comes from
	Listen []string
	// host names under which browsers reach it; those of Listen and of URL are always
	// permitted
	Names []string
	URL   string // where users find the pages; by default it is made of the first address
	// certificate chain and key of the pages, in PEM; empty: no TLS, on loopback
	// addresses and sockets only
	Certificate, Key string
	// account that the daemon takes on if it is started by root; empty: roost-web, or uid
	// 65533 on a host without that account
	User string
	// directory with checkpoints of the cell over time, for pages of past instants
	Checkpoints string
	// the daemon has a systemd unit, and the master does not start it
	OwnUnit bool

	Providers []OIDCProvider // OpenID providers whose users may log in
	// service of PAM whose passwords are good for a login, and the directory of its file;
	// empty: passwords are off, and /etc/pam.d
	PAMService, PAMDir string
}

// LoginSocketName is the name of the socket on which a schedd serves logins by TLS. The
// web daemon of its node uses it.
const LoginSocketName = "logins.sock"

// LoginSocket returns the address of the socket on which the node's schedd serves logins.
func (n *Node) LoginSocket() string { return "unix:" + filepath.Join(n.RunDir(), LoginSocketName) }

// WebDir returns the directory of the web daemon's tokens and logs of writes.
func (n *Node) WebDir() string { return filepath.Join(n.Dir, "web") }

func (s *blockReader) readWeb(b *hclsyntax.Block, to *WebSettings) {
	w := s.innerBlock(b)
	w.readAddresses("listen", &to.Listen)
	w.readList("names", `"roost.example.org"`, &to.Names, func(text string, at hcl.Range) {
		if strings.ContainsAny(text, ":/@ ") {
			s.addProblem(at, `write it as names = ["roost.example.org"]`, "names: %q is not the name of a host", text)
		}
	})
	w.readText("url", &to.URL)
	w.readText("certificate", &to.Certificate)
	w.readText("key", &to.Key)
	w.readText("user", &to.User)
	w.readText("checkpoints", &to.Checkpoints)
	w.readBool("own_unit", &to.OwnUnit)
	for _, b := range w.nestedBlocks("oidc") {
		w.readProvider(b, to)
	}
	if b := w.singleBlock("pam"); b != nil {
		w.readPAM(b, to)
	}
	w.reportUnknown()
	if (to.Certificate == "") != (to.Key == "") {
		s.addProblem(b.TypeRange, "name both files, or neither", "web needs certificate and key together")
	}
	if len(to.Listen) == 0 {
		s.addProblem(b.TypeRange, `add listen = ["127.0.0.1:9780"]`, "web needs an address for browsers")
	}
}

// fillWebDefaults sets defaults for what a node file leaves out.
func (n *Node) fillWebDefaults(at string) {
	w := n.Web
	if w == nil {
		return
	}
	if w.Certificate != "" {
		w.Certificate, w.Key = joinBelow(at, w.Certificate), joinBelow(at, w.Key)
	}
	if w.Checkpoints == "" {
		w.Checkpoints = filepath.Join(n.Dir, "checkpoints")
	}
	w.Checkpoints = joinBelow(at, w.Checkpoints)
	w.fillLoginDefaults(at)
	if w.URL == "" {
		scheme := "http"
		if w.Certificate != "" {
			scheme = "https"
		}
		for _, addr := range w.Listen {
			if !isLocalAddress(addr) {
				w.URL = scheme + "://" + addr
				break
			}
		}
	}
}

// checkWeb returns what is wrong with the web block, or nil. Cookies and tokens are sent
// to it, so that a network address needs TLS.
func (n *Node) checkWeb() error {
	w := n.Web
	if w == nil {
		return nil
	}
	if n.Schedd == nil {
		return fmt.Errorf("%w: web: it asks the schedd of its node, and there is none: add a schedd block",
			roost.BadConfig)
	}
	for _, addr := range w.Listen {
		if w.Certificate == "" && !isLocalAddress(addr) && !isLoopback(addr) {
			return fmt.Errorf("%w: web: %s is reached over the network, and cookies would cross it in the clear: "+
				"name certificate and key, or listen on a loopback address or a unix socket behind a proxy",
				roost.BadConfig, addr)
		}
	}
	u, err := url.Parse(w.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" {
		return fmt.Errorf("%w: web: url %q: write it as \"https://roost.example.org\", without a path",
			roost.BadConfig, w.URL)
	}
	w.URL = strings.TrimSuffix(w.URL, "/")
	return nil
}

// isLoopback reports whether only this host reaches an address.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

func (w fileWriter) writeWeb(to *WebSettings) {
	if to == nil {
		return
	}
	b := w.writeBlock("web")
	b.writeList("listen", to.Listen)
	b.writeList("names", to.Names)
	b.writeText("url", to.URL)
	b.writeText("certificate", to.Certificate)
	b.writeText("key", to.Key)
	b.writeText("user", to.User)
	b.writeText("checkpoints", to.Checkpoints)
	b.writeBool("own_unit", to.OwnUnit)
	b.writeLogins(to)
}
