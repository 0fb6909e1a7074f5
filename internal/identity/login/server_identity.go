package login

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
)

// ServerName is the server name that users ask for. It is not the name of a host.
const ServerName = "users.roost"

// Identity returns the identity with which a schedd serves users and the pool at the same
// address. pool is its identity as a node; nil: it has none, and serves users only.
func (k *Store) Identity(pool *rpc.Identity) (*rpc.Identity, error) {
	pair, err := k.authority.Pair(k.node, []peer.Role{peer.Schedd}, pki.AuthorityValidity)
	if err != nil {
		return nil, err
	}
	users := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{pair},
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequestClientCert, // a client without a certificate can only log in
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 {
				return nil
			}
			// A revocation is reported in the reply to a call, with an explanation; TLS
			// has no text for it.
			return k.authority.CheckUser(cs.PeerCertificates[0])
		},
	}
	if pool == nil {
		return k.usersIdentity(users), nil
	}
	return &rpc.Identity{
		Name: pool.Name, Roles: pool.Roles, Refresh: pool.Refresh,
		TLS: func() *tls.Config {
			config := pool.TLS()
			config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				if hello.ServerName == ServerName {
					return users, nil
				}
				return nil, nil
			}
			return config
		},
		CheckValid: func(leaf *x509.Certificate) error {
			if k.authority.CheckUser(leaf) == nil {
				return k.checkValid(leaf)
			}
			if pool.CheckValid == nil {
				return nil
			}
			return pool.CheckValid(leaf)
		},
		IdentifyUser: k.userPeer,
	}, nil
}

// usersIdentity returns the identity of a schedd without a certificate of a pool.
func (k *Store) usersIdentity(users *tls.Config) *rpc.Identity {
	return &rpc.Identity{
		Name: k.node, CheckValid: k.checkValid, IdentifyUser: k.userPeer,
		TLS: func() *tls.Config {
			return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: users.NextProtos,
				GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
					if hello.ServerName != ServerName {
						return nil, fmt.Errorf("%w: this schedd has no certificate of a pool", roost.Unauthenticated)
					}
					return users, nil
				}}
		},
	}
}

// checkValid returns why a user's certificate is not valid, or nil.
func (k *Store) checkValid(leaf *x509.Certificate) error {
	if err := k.authority.CheckUser(leaf); err != nil {
		return fmt.Errorf("%w: %w", roost.Unauthenticated, err)
	}
	_, err := k.Account(leaf.SerialNumber.Text(16), time.Now())
	return err
}

// userPeer returns the peer of a connection by a user.
func (k *Store) userPeer(cs tls.ConnectionState) (p peer.Peer, ok bool) {
	if cs.ServerName != ServerName {
		return p, false
	}
	p.SecurityLevel = credentials.PrivacyAndIntegrity
	if len(cs.PeerCertificates) == 0 {
		p.Certified = []peer.Role{peer.Anonymous}
		return p, true
	}
	leaf := cs.PeerCertificates[0]
	p.User, p.Serial = leaf.Subject.CommonName, leaf.SerialNumber.Text(16)
	p.Name = p.User + "@" + k.node
	return p, true
}
