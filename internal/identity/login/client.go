package login

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/loginfile"
	"github.com/roost-batch/roost/internal/rpc"
)

// LoginEntry is a login on the user's machine: one file of the user's, which no other
// user can read.
type LoginEntry struct {
	Node        string `json:"node"`    // node of the schedd
	Address     string `json:"address"` // where the schedd listens
	User        string `json:"user"`    // the user's name there
	Certificate []byte `json:"certificate"`
	Key         []byte `json:"key"`       // private key in PKCS #8
	Authority   []byte `json:"authority"` // certificate of the schedd's own authority
}

// Load reads the login at a node's schedd. A missing one is roost.NotFound.
func Load(dir, node string) (*LoginEntry, error) {
	if !config.IsValidName(node) {
		return nil, fmt.Errorf("node %q: %w: this is not the name of a node", node, roost.Invalid)
	}
	file := loginfile.Path(dir, node)
	info, err := os.Stat(file)
	// After su and sudo, $HOME may be another user's without access: those logins are not
	// this user's, and on this host none is needed.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("login at %s: %w", node, roost.NotFound)
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("login %s: %w: others can read it (mode %04o): revoke it on %s with roost logins rm, "+
			"and log in again", file, roost.BadConfig, info.Mode().Perm(), node)
	}
	e := &LoginEntry{}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, e)
	}
	if err != nil {
		return nil, fmt.Errorf("login %s: %w: %w", file, roost.NoInput, err)
	}
	return e, nil
}

// Save writes the login to disk.
func (e *LoginEntry) Save(dir string) error {
	if !config.IsValidName(e.Node) {
		return fmt.Errorf("login: %w: the schedd says that its node is called %.80q", roost.Invalid, e.Node)
	}
	text, err := json.MarshalIndent(e, "", "  ")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = atomicfile.WriteDurable(loginfile.Path(dir, e.Node), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("login: %w: %w", roost.NoOutput, err)
	}
	return nil
}

// Forget removes a login from this machine.
func Forget(dir, node string) error { return os.Remove(loginfile.Path(dir, node)) }

// Expires returns when the login expires.
func (e *LoginEntry) Expires() time.Time {
	cert, err := x509.ParseCertificate(e.Certificate)
	if err != nil {
		return time.Time{}
	}
	return cert.NotAfter
}

// Identity returns the identity that the login has at the schedd.
func (e *LoginEntry) Identity() (*rpc.Identity, error) {
	root, err := x509.ParseCertificate(e.Authority)
	if err != nil {
		return nil, fmt.Errorf("login at %s: %w: %w", e.Node, roost.BadConfig, err)
	}
	key, err := x509.ParsePKCS8PrivateKey(e.Key)
	if err != nil {
		return nil, fmt.Errorf("login at %s: %w: %w", e.Node, roost.BadConfig, err)
	}
	if ends := e.Expires(); time.Now().After(ends) {
		return nil, fmt.Errorf("login at %s: %w: it ended on %s: on %s run roost token --user, and here the line "+
			"that it prints", e.Node, roost.Unauthenticated, ends.Format(time.DateOnly), e.Node)
	}
	return clientTLS(tls.Certificate{Certificate: [][]byte{e.Certificate}, PrivateKey: key},
		func(leaf, _ *x509.Certificate) error {
			return checkServer(leaf, root, e.Node)
		}), nil
}

// LoginRequest is the state of a login in progress. There is no certificate yet, and of
// the schedd's own authority only the digest in the token is known. After the handshake,
// seen has the authority.
type LoginRequest struct {
	*rpc.Identity
	Key  ed25519.PrivateKey
	seen chan *x509.Certificate
}

// NewRequest prepares the use of a token.
func NewRequest(t LoginToken) (*LoginRequest, error) {
	return newRequest(func(root *x509.Certificate) error {
		if root == nil || sha256.Sum256(root.Raw) != t.Fingerprint {
			return fmt.Errorf("%w: this is not the schedd that made the token: is the connection intercepted, or "+
				"was it installed again?", roost.Unauthenticated)
		}
		return nil
	})
}

// NewSocketRequest prepares a login over the schedd's socket on this host. Whoever can
// make a socket in that directory is the schedd, so that its authority need not be known
// before.
func NewSocketRequest() (*LoginRequest, error) {
	return newRequest(func(root *x509.Certificate) error {
		if root == nil {
			return fmt.Errorf("%w: the schedd shows no authority", roost.Unauthenticated)
		}
		return nil
	})
}

// newRequest prepares a login. check gets the schedd's own authority.
func newRequest(check func(root *x509.Certificate) error) (*LoginRequest, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	g := &LoginRequest{Key: key, seen: make(chan *x509.Certificate, 1)}
	g.Identity = clientTLS(tls.Certificate{}, func(leaf, root *x509.Certificate) error {
		if err := check(root); err != nil {
			return err
		}
		if err := checkServer(leaf, root, leaf.Subject.CommonName); err != nil {
			return err
		}
		select {
		case g.seen <- root:
		default: // a second connection
		}
		return nil
	})
	return g, nil
}

// CertRequest returns a certificate request for the key of the login.
func (g *LoginRequest) CertRequest() ([]byte, error) {
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, g.Key)
}

// Entry returns the resulting login.
func (g *LoginRequest) Entry(ctx context.Context, node, address, user string, certificate []byte) (*LoginEntry, error) {
	leaf, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, fmt.Errorf("login: %w: %w", roost.Invalid, err)
	}
	if public, ok := leaf.PublicKey.(ed25519.PublicKey); !ok || !public.Equal(g.Key.Public()) {
		return nil, fmt.Errorf("login: %w: the certificate is not for this machine's key", roost.Invalid)
	}
	key, err := x509.MarshalPKCS8PrivateKey(g.Key)
	if err != nil {
		return nil, err
	}
	select {
	case root := <-g.seen:
		return &LoginEntry{Node: node, Address: address, User: user, Certificate: certificate, Key: key,
			Authority: root.Raw}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// clientTLS returns the user's side of TLS. check gets the server's certificate and the
// one that signed it.
func clientTLS(pair tls.Certificate, check func(leaf, root *x509.Certificate) error) *rpc.Identity {
	return &rpc.Identity{PinnedAuthority: true, TLS: func() *tls.Config {
		config := &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, ServerName: ServerName,
			InsecureSkipVerify: true, // host names do not matter here: VerifyConnection checks the certificate
			VerifyConnection: func(cs tls.ConnectionState) error {
				if len(cs.PeerCertificates) == 0 {
					return fmt.Errorf("schedd: %w: no certificate", roost.Unauthenticated)
				}
				var root *x509.Certificate
				if len(cs.PeerCertificates) > 1 {
					root = cs.PeerCertificates[1]
				}
				return check(cs.PeerCertificates[0], root)
			},
		}
		if pair.PrivateKey != nil {
			config.Certificates = []tls.Certificate{pair}
		}
		return config
	}}
}

// checkServer returns why a schedd is not the one of a node, or nil.
func checkServer(leaf, root *x509.Certificate, node string) error {
	authorities := x509.NewCertPool()
	authorities.AddCert(root)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: authorities,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil {
		return fmt.Errorf("%w: this is not the schedd of %s at which the login was made: %w", roost.Unauthenticated,
			node, err)
	}
	if leaf.Subject.CommonName != node {
		return fmt.Errorf("%w: this is the schedd of %s and not of %s", roost.Unauthenticated,
			leaf.Subject.CommonName, node)
	}
	return nil
}
