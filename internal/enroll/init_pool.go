package enroll

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/ca"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// InitOptions describes a new pool on this machine.
type InitOptions struct {
	NodePaths
	Pool    string // the machine's name by default
	Address string // HOST[:PORT] of the authority; this machine's own by default
	Server  bool   // jobs run on this machine, too
}

// Init makes the pool's authority, this machine's key and certificate, and its node file.
// It returns the node, and a first token for a server. It starts nothing.
func Init(f InitOptions) (node *config.Node, token string, err error) {
	if err := f.checkUnused(); err != nil {
		return nil, "", err
	}
	n, err := f.node()
	if err != nil {
		return nil, "", err
	}
	if err := f.makeDirs(); err != nil {
		return nil, "", err
	}
	request, err := pki.Request(n.TLS.Key)
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Join(f.Dir(), "authority")
	leaf, root, err := ca.Init(dir,
		ca.InitialNode{Pool: n.Pool, Name: n.Name, Roles: n.CertificateRoles(), Request: request})
	if err != nil {
		return nil, "", err
	}
	if err := errors.Join(pki.SaveAuthority(n.TLS, root), pki.SaveCertificate(n.TLS, leaf)); err != nil {
		return nil, "", err
	}
	if token, err = ca.CreateTokenAt(dir, n.Name, ca.Server, time.Hour); err != nil {
		return nil, "", err
	}
	node, err = f.writeNodeFile(n, "Written by roost init: the pool begins here.")
	return node, token, err
}

// node returns the configuration of the new node.
func (f InitOptions) node() (*config.Node, error) {
	host, port := "", authorityPort
	var err error
	if f.Address == "" {
		host, err = ownAddress()
	} else {
		host, port, err = SplitHostPort(f.Address)
	}
	if err != nil {
		return nil, err
	}
	name := config.HostName()
	pool := f.Pool
	if pool == "" {
		pool = name
	}
	if !config.IsValidName(pool) {
		return nil, fmt.Errorf("pool %q: %w: a name has letters, digits, \".\", \"-\" and \"_\", at most 64 of them",
			pool, roost.Usage)
	}
	if err := checkPortFree(host, port, port+collectorPort, port+negotiatorPort, port+startdPort,
		port+checkpointServerPort, port+scheddPort); err != nil {
		return nil, err
	}
	n := f.newNode(name, pool)
	n.Schedd.Listen = []string{joinHostPort(host, port+scheddPort)}
	n.Authority = &config.AuthoritySettings{Listen: []string{joinHostPort(host, port)}}
	n.Collector = &config.CollectorSettings{Listen: []string{joinHostPort(host, port+collectorPort)}}
	n.Negotiator = &config.NegotiatorSettings{Listen: []string{joinHostPort(host, port+negotiatorPort)}}
	n.Images = &config.CheckpointServerSettings{Listen: []string{joinHostPort(host, port+checkpointServerPort)}}
	n.AuthorityAt, n.Collectors, n.Negotiators = n.Authority.Listen[0], n.Collector.Listen, n.Negotiator.Listen
	if f.Server {
		n.Startds = []config.StartdSettings{{Name: name, Listen: []string{joinHostPort(host, port+startdPort)}}}
	}
	return n, nil
}
