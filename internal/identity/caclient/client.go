package caclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/ca"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Time limits of a joining machine.
const (
	dialTimeout = 10 * time.Second
	callTimeout = 20 * time.Second
	// with a larger difference of clocks, certificates would seem invalid sooner or later
	maxClockSkew = 5 * time.Minute
)

// Client is the connection of a machine that is no member yet to the authority of its
// join token. Connect has verified the authority before anything was sent.
type Client struct {
	Authority *x509.Certificate
	LocalAddr string // this machine's own address on the connection

	addr string
	conn *grpc.ClientConn
}

// Connect connects to the authority at addr, host:port. Its errors say what to do, for
// the person who typed the address and the token.
func Connect(ctx context.Context, addr string, token ca.JoinToken) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, connectError(addr, err)
	}
	door := &Client{addr: addr}
	door.LocalAddr, _, _ = net.SplitHostPort(raw.LocalAddr().String())
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
		// verifyAuthority checks the certificate by its digest instead; host names do not
		// matter
		InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) (err error) {
			door.Authority, err = verifyAuthority(cs.PeerCertificates, token)
			return err
		},
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		var ours roost.ErrorKind
		if errors.As(err, &ours) {
			return nil, fmt.Errorf("%s: %w", addr, err)
		}
		return nil, fmt.Errorf("%s: %w: something answers there, and it is no authority of a pool (%w): is the "+
			"port right?", addr, roost.Unavailable, err)
	}
	once := make(chan net.Conn, 1)
	once <- conn
	door.conn, err = grpc.NewClient("passthrough:///"+addr, grpc.WithAuthority("roost"), grpc.WithUserAgent("roost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the connection already is TLS
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case c := <-once:
				return c, nil
			default:
				return nil, fmt.Errorf("%s: %w: the authority has closed the connection", addr, roost.Unavailable)
			}
		}))
	if err != nil {
		conn.Close()
		return nil, err
	}
	return door, nil
}

// Close closes the connection.
func (d *Client) Close() error { return d.conn.Close() }

// verifyAuthority checks that the other end is the authority of the token. The last of
// its certificates must have the digest in the token and must have signed the first,
// which must have the authority's role. Their validity times are not checked, because
// this machine's clock may be wrong: CheckPool finds that out.
func verifyAuthority(chain []*x509.Certificate, token ca.JoinToken) (*x509.Certificate, error) {
	if len(chain) != 2 {
		return nil, fmt.Errorf("%w: no authority of a pool answers there", roost.Unauthenticated)
	}
	leaf, root := chain[0], chain[1]
	if ca.Fingerprint(root) != token.Fingerprint {
		return nil, fmt.Errorf("%w: the authority that answers there (of a pool %q) is not the one that made the "+
			"token. Nothing was sent to it. Is the address of another pool? "+
			"If it is the right one, the connection may be intercepted: tell the administrator",
			roost.Unauthenticated,
			root.Subject.CommonName)
	}
	if !root.IsCA || leaf.CheckSignatureFrom(root) != nil ||
		!slices.Contains(leaf.Subject.OrganizationalUnit, string(peer.Authority)) {
		return nil, fmt.Errorf("%w: what answers there is not the pool's authority, though it shows its "+
			"certificate: the connection may be intercepted", roost.Unauthenticated)
	}
	return root, nil
}

// connectError returns an error that explains why nothing answers.
func connectError(addr string, err error) error {
	host, port, _ := net.SplitHostPort(addr)
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Errorf("%s: %w: no host is called %s here: is it written right? Its address does as well", addr,
			roost.Unavailable, host)
	case errors.As(err, &name):
		return fmt.Errorf("%s: %w: the name %s cannot be looked up (%s): try its address", addr, roost.Unavailable,
			host, name.Err)
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%s: %w: the host is there and nothing listens on port %s: is the port right, and does "+
			"roost run there (systemctl status roost)?", addr, roost.Unavailable, port)
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH):
		return fmt.Errorf("%s: %w: there is no route to that host: is the address right, and is this machine on the "+
			"network?", addr, roost.Unavailable)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s: %w: it does not answer: is the address right, and does a firewall let port %s through?",
			addr, roost.Unavailable, port)
	}
	return fmt.Errorf("%s: %w: %w", addr, roost.Unavailable, err)
}

// CheckPool asks for the name of the pool, and refuses a clock that is far from the
// authority's. It sends nothing secret, and the token remains unused.
func (d *Client) CheckPool(ctx context.Context) (pool string, err error) {
	pool, _, err = d.CheckClock(ctx)
	return pool, err
}

// CheckClock is CheckPool, and returns how far the authority's clock is ahead of this
// machine's.
func (d *Client) CheckClock(ctx context.Context) (pool string, ahead time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	reply, err := wire.NewAuthorityClient(d.conn).Greet(ctx, &wire.GreetRequest{})
	if err != nil {
		return "", 0, d.authorityError(err)
	}
	mine, theirs := began.Add(time.Since(began)/2), time.Unix(0, reply.GetNow())
	return reply.GetPool(), theirs.Sub(mine), clockSkewError(mine, theirs)
}

// clockSkewError returns an error that says what to do about two clocks that differ too
// much.
func clockSkewError(mine, theirs time.Time) error {
	off := mine.Sub(theirs).Round(time.Second)
	if off.Abs() <= maxClockSkew {
		return nil
	}
	way := "ahead of"
	if off < 0 {
		way = "behind"
	}
	return fmt.Errorf("clock: %w: this machine's is %v %s the pool's, where it is %s: set it (timedatectl set-ntp "+
		"true, or date -s), and join again; the token is still good",
		roost.Conflict, off.Abs(), way, theirs.UTC().Format("2006-01-02 15:04:05 MST"))
}

// Join sends the token and requests a certificate. If name is empty, the node gets the
// token's name, else host, the name of this machine.
func (d *Client) Join(ctx context.Context, token ca.JoinToken, part ca.NodePart, name, host string,
	request []byte) (*wire.JoinReply, error) {
	return d.join(ctx, &wire.JoinRequest{Secret: token.Secret[:], Part: string(part), Name: name, Host: host,
		Request: request})
}

// JoinPilot is Join for a pilot, which states how long it will live; 0: it does not know.
func (d *Client) JoinPilot(ctx context.Context, token ca.JoinToken, name string, life time.Duration,
	request []byte) (*wire.JoinReply, error) {
	return d.join(ctx, &wire.JoinRequest{Secret: token.Secret[:], Part: string(ca.Pilot), Name: name, Life: int64(life),
		Request: request})
}

func (d *Client) join(ctx context.Context, request *wire.JoinRequest) (*wire.JoinReply, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := wire.NewAuthorityClient(d.conn).Join(ctx, request)
	if err != nil {
		return nil, d.authorityError(err)
	}
	return reply, nil
}

// authorityError returns an error of the authority, or that of a broken connection.
func (d *Client) authorityError(err error) error {
	err = rpc.FromStatus(err)
	if errors.Is(err, roost.Unavailable) && strings.Contains(err.Error(), "transport") {
		return fmt.Errorf("%s: %w: the connection broke before the answer came: run the same command again; a token "+
			"is used up by one machine, not by one try", d.addr, roost.Unavailable)
	}
	return err
}
