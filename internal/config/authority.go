package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
)

// Authority is the pool's certificate authority, on the node that it runs on.
type Authority struct {
	Listen []string // where new machines and members reach it; never a unix socket
	Dir    string   // where its key and its store are
}

// AuthoritySocket is where the administrator's commands reach the authority on this node.
func (n *Node) AuthoritySocket() string { return filepath.Join(n.RunDir(), "authority.sock") }

// Member lists the roles in the node's own certificate: all that it plays but the authority's, whose daemon makes itself one.
func (n *Node) Member() []auth.Role {
	return slices.DeleteFunc(n.Roles(), func(r auth.Role) bool { return r == auth.Authority })
}

func (s *section) readAuthority(b *hclsyntax.Block, to *Authority) {
	a := s.inside(b)
	a.addresses("listen", &to.Listen)
	a.text("dir", &to.Dir)
	a.done()
	if attr, ok := b.Body.Attributes["listen"]; !ok {
		s.add(b.TypeRange, `add listen = ["10.0.0.1:9700"]`, "the authority needs an address that new machines reach")
	} else if len(to.Listen) == 0 || local(Reach(to.Listen)) {
		s.add(attr.Expr.Range(), `write it as listen = ["10.0.0.1:9700"]`, "no new machine reaches the authority there")
	}
}

// fillAuthority puts in what a node file leaves out.
func (n *Node) fillAuthority(at string) {
	a := n.Authority
	if a == nil {
		return
	}
	set(&a.Dir, filepath.Join(n.Dir, "authority"))
	a.Dir = below(at, a.Dir)
	set(&n.AuthorityAt, Reach(a.Listen))
}

func (n *Node) checkAuthority() error {
	if n.AuthorityAt == "" || n.TLS != nil {
		return nil
	}
	return fmt.Errorf("%w: the authority at %s renews certificates, and there is no tls block that names one", roost.BadConfig, n.AuthorityAt)
}

func (w writer) authority(a *Authority) {
	if a == nil {
		return
	}
	b := w.block("authority")
	b.list("listen", a.Listen)
	b.text("dir", a.Dir)
}
