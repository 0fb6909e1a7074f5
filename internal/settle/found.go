package settle

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/authority"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pki"
)

// Founding is a pool that begins on this machine.
type Founding struct {
	Place
	Pool    string // the machine's name unless set
	Address string // HOST[:PORT] of the authority; this machine's own unless set
	Server  bool   // jobs run on this machine, too
}

// Found makes the pool's authority, this machine's key and certificate, and its node file. It returns the node, and a first token for a server. Nothing is started.
func Found(f Founding) (node *config.Node, token string, err error) {
	if err := f.free(); err != nil {
		return nil, "", err
	}
	n, err := f.node()
	if err != nil {
		return nil, "", err
	}
	if err := f.prepare(); err != nil {
		return nil, "", err
	}
	request, err := pki.Request(n.TLS.Key)
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Join(f.Dir(), "authority")
	leaf, ca, err := authority.Found(dir, authority.Founder{Pool: n.Pool, Name: n.Name, Roles: n.Member(), Request: request})
	if err != nil {
		return nil, "", err
	}
	if err := errors.Join(pki.KeepAuthority(n.TLS, ca), pki.KeepCertificate(n.TLS, leaf)); err != nil {
		return nil, "", err
	}
	if token, err = authority.MintAt(dir, n.Name, authority.Server, time.Hour); err != nil {
		return nil, "", err
	}
	node, err = f.write(n, "Written by roost init: the pool begins here.")
	return node, token, err
}

// node is what the machine will be.
func (f Founding) node() (*config.Node, error) {
	host, port := "", authorityPort
	var err error
	if f.Address == "" {
		host, err = ownHost()
	} else {
		host, port, err = Split(f.Address)
	}
	if err != nil {
		return nil, err
	}
	name := config.HostName()
	pool := f.Pool
	if pool == "" {
		pool = name
	}
	if !config.ValidName(pool) {
		return nil, fmt.Errorf("pool %q: %w: a name has letters, digits, \".\", \"-\" and \"_\", at most 64 of them", pool, roost.Usage)
	}
	if err := vacant(host, port, port+collectorPort, port+negotiatorPort, port+startdPort, port+scheddPort); err != nil {
		return nil, err
	}
	n := f.blank(name, pool)
	n.Schedd.Listen = []string{join(host, port+scheddPort)}
	n.Authority = &config.Authority{Listen: []string{join(host, port)}}
	n.Collector = &config.Collector{Listen: []string{join(host, port+collectorPort)}}
	n.Negotiator = &config.Negotiator{Listen: []string{join(host, port+negotiatorPort)}}
	n.AuthorityAt, n.Collectors, n.Negotiators = n.Authority.Listen[0], n.Collector.Listen, n.Negotiator.Listen
	if f.Server {
		n.Startds = []config.Startd{{Name: name, Listen: []string{join(host, port+startdPort)}}}
	}
	return n, nil
}
