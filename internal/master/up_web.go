package master

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// webAddress chooses the address of the pages of a pool. It is that of the node file of
// the last start, so that bookmarks stay valid, unless another program has taken it.
func webAddress(file string) (string, error) {
	if last, err := config.Load(file); err == nil && last.Web != nil {
		for _, address := range last.Web.Listen {
			if host, _, err := net.SplitHostPort(address); err == nil && host == "127.0.0.1" && isFree(address) {
				return address, nil
			}
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("address for the pages: %w: %w; --no-web leaves them out", roost.Unavailable, err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// isFree reports whether an address can be listened on.
func isFree(address string) bool {
	l, err := net.Listen("tcp", address)
	if err == nil {
		l.Close()
	}
	return err == nil
}

const (
	linkLife    = time.Minute     // how long the link can be used
	linkTimeout = 5 * time.Second // how long the schedd has for it
)

// webLink returns a link with which the user who started the pool logs in, once. It is
// empty without a web daemon, or if the schedd does not answer: the user can then run
// roost web login.
func webLink(ctx context.Context, n *config.Node) string {
	if n.Web == nil {
		return ""
	}
	conn, err := rpc.DialLocal(n.Schedd.Socket)
	if err != nil {
		return ""
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, linkTimeout)
	defer cancel()
	made, err := wire.NewScheddClient(conn).LoginToken(ctx, &wire.LoginTokenRequest{Life: int64(linkLife),
		Validity: int64(24 * time.Hour), Web: true})
	if err != nil {
		return ""
	}
	return made.GetUrl() + "/login#" + made.GetToken()
}
