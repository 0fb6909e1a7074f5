package caclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// RemoteAuthority is an authority over the network. Every request has a connection of its
// own, with the node's present certificate, so that thousands of nodes without a request
// hold no connections.
type RemoteAuthority struct {
	Addr  string
	Files *config.TLSFiles
}

// remoteTimeout is how long one request may take.
const remoteTimeout = 10 * time.Second

// Renew implements Authority.
func (r *RemoteAuthority) Renew(ctx context.Context, request []byte) (certificate []byte, err error) {
	err = r.call(ctx, func(ctx context.Context, c wire.AuthorityClient) error {
		reply, err := c.Renew(ctx, &wire.RenewRequest{Request: request})
		certificate = reply.GetCertificate()
		return err
	})
	return certificate, err
}

// Revoked implements Authority.
func (r *RemoteAuthority) Revoked(ctx context.Context, have int64) (list []byte, err error) {
	err = r.call(ctx, func(ctx context.Context, c wire.AuthorityClient) error {
		reply, err := c.Revoked(ctx, &wire.RevokedRequest{Number: have})
		list = reply.GetList()
		return err
	})
	return list, err
}

// Leave revokes the node's own certificates.
func (r *RemoteAuthority) Leave(ctx context.Context) error {
	return r.call(ctx, func(ctx context.Context, c wire.AuthorityClient) error {
		_, err := c.Leave(ctx, &wire.LeaveRequest{})
		return err
	})
}

func (r *RemoteAuthority) call(ctx context.Context, question func(context.Context, wire.AuthorityClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	id, err := pki.Load(r.Files)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		conn, err := rpc.Dial(r.Addr, id, peer.Authority)
		if err != nil {
			return err
		}
		err = rpc.FromStatus(question(ctx, wire.NewAuthorityClient(conn)))
		conn.Close()
		if try == maxTries || !isHungUp(err) {
			return r.authorityError(err, id.Name)
		}
	}
}

// maxTries bounds how often a request is repeated when the authority closed the
// connection.
const maxTries = 5

// isHungUp reports whether the authority closed the connection during a request. The
// authority may have sent a reason, which can be lost: in TLS 1.3 (RFC 8446 §4.4) the
// client finishes its handshake before the server has checked the client's certificate,
// and data that it then sends to a closed socket makes the kernel discard what the server
// sent.
func isHungUp(err error) bool {
	if !errors.Is(err, roost.Unavailable) {
		return false
	}
	for _, end := range []string{"broken pipe", "connection reset by peer", "EOF", "server preface",
		"closed network connection", "transport is closing"} {
		if strings.Contains(err.Error(), end) {
			return true
		}
	}
	return false
}

// authorityError returns an error with an explanation. An authority that refuses a
// certificate closes the connection before a request can be made.
func (r *RemoteAuthority) authorityError(err error, name string) error {
	switch {
	case errors.Is(err, roost.Unavailable) && strings.Contains(err.Error(), "bad certificate"):
		return fmt.Errorf("authority at %s: %w: it does not take this node's certificate any more: was it revoked? "+
			"Join again with a token for its name (roost token --for %s, on that host)",
			r.Addr, roost.PermissionDenied, name)
	case isHungUp(err):
		return fmt.Errorf("authority at %s: %w: it closes each connection before it answers: was this node's "+
			"certificate revoked? Then join again with a token for its name (roost token --for %s, on that host)",
			r.Addr, roost.Unavailable, name)
	case errors.Is(err, roost.Unavailable):
		return fmt.Errorf("authority at %s: %w: it cannot be reached now", r.Addr, roost.Unavailable)
	}
	return err
}
