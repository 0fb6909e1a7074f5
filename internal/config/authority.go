package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// AuthoritySettings configures the pool's certificate authority, on its node.
type AuthoritySettings struct {
	Listen []string // network addresses for new machines and members; never a unix socket
	Dir    string   // directory of its key and its store
}

// AuthoritySocket returns the address of the authority on this node for the
// administrator's commands.
func (n *Node) AuthoritySocket() string { return filepath.Join(n.RunDir(), "authority.sock") }

// CertificateRoles lists the roles in the node's own certificate. These are all its roles
// except the authority's, whose daemon makes its own certificate.
func (n *Node) CertificateRoles() []peer.Role {
	return slices.DeleteFunc(n.Roles(), func(r peer.Role) bool { return r == peer.Authority })
}

func (s *blockReader) readAuthority(b *hclsyntax.Block, to *AuthoritySettings) {
	a := s.innerBlock(b)
	a.readAddresses("listen", &to.Listen)
	a.readText("dir", &to.Dir)
	a.reportUnknown()
	if attr, ok := b.Body.Attributes["listen"]; !ok {
		s.addProblem(b.TypeRange, `add listen = ["10.0.0.1:9700"]`,
			"the authority needs an address that new machines reach")
	} else if len(to.Listen) == 0 || isLocalAddress(AdvertisedAddress(to.Listen)) {
		s.addProblem(attr.Expr.Range(), `write it as listen = ["10.0.0.1:9700"]`,
			"no new machine reaches the authority there")
	}
}

// fillAuthorityDefaults sets defaults for what a node file leaves out.
func (n *Node) fillAuthorityDefaults(at string) {
	a := n.Authority
	if a == nil {
		return
	}
	setDefault(&a.Dir, filepath.Join(n.Dir, "authority"))
	a.Dir = joinBelow(at, a.Dir)
	setDefault(&n.AuthorityAt, AdvertisedAddress(a.Listen))
}

func (n *Node) checkAuthority() error {
	if n.AuthorityAt == "" || n.TLS != nil {
		return nil
	}
	return fmt.Errorf("%w: the authority at %s renews certificates, and there is no tls block that names one",
		roost.BadConfig, n.AuthorityAt)
}

func (w fileWriter) writeAuthority(a *AuthoritySettings) {
	if a == nil {
		return
	}
	b := w.writeBlock("authority")
	b.writeList("listen", a.Listen)
	b.writeText("dir", a.Dir)
}
