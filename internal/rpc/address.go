package rpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc/localrpc"
)

// RelayPrefix begins the address of a node that is reached through relays, before their
// addresses: "relay:HOST:PORT,HOST:PORT".
const RelayPrefix = "relay:"

// SplitAddress splits an address into the arguments of net.Dial.
//
// A port must be a number, because names of services differ between hosts.
func SplitAddress(addr string) (network, target string, err error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if !filepath.IsAbs(path) {
			return "", "", fmt.Errorf("address %q: %w: a socket's path is absolute, as in unix:/run/roost/schedd.sock",
				addr, roost.Invalid)
		}
		return "unix", path, nil
	}
	if relays, ok := strings.CutPrefix(addr, RelayPrefix); ok {
		return "relay", relays, nil
	}
	_, port, err := net.SplitHostPort(addr)
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		return "", "", fmt.Errorf("address %q: %w: write it as unix:/path or host:port", addr, roost.Invalid)
	}
	return "tcp", addr, nil
}

// Listen listens on addr. A unix socket gets the mode, and a socket without a listener in
// its place is removed; one with a listener is an error.
func Listen(addr string, mode fs.FileMode) (net.Listener, error) {
	network, target, err := SplitAddress(addr)
	if err != nil {
		return nil, err
	}
	if network == "relay" {
		return nil, fmt.Errorf("listen on %s: %w: only a startd can be reached through a relay", addr, roost.BadConfig)
	}
	if network == "tcp" {
		l, err := net.Listen(network, target)
		if errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("listen on %s: %w: the port is taken by another program: end that one (ss -ltnp "+
				"tells which it is), or write another port into the node file", addr, roost.Unavailable)
		}
		return l, err
	}
	if conn, err := dialUnix(context.Background(), target); err == nil {
		conn.Close()
		return nil, fmt.Errorf("listen on %s: %w: another daemon answers there", addr, roost.Conflict)
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	short, done, err := ShortPath(target)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(target, mode); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// dialRelayed returns how connections to a node are made through the relays of an
// address.
func dialRelayed(id *Identity, node string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, target string) (net.Conn, error) {
		if id == nil || id.DialRelay == nil {
			return nil, fmt.Errorf("node %s: %w: it is behind a relay, which only schedds use", node,
				roost.Unavailable)
		}
		conn, err := id.DialRelay(ctx, target, node)
		if err != nil { // not a status: gRPC would end calls that wait until the node is there
			return nil, fmt.Errorf("%w: %s", roost.Unavailable, err.Error())
		}
		return conn, nil
	}
}

func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := ShortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", short)
}

// ShortPath returns a name of at most 107 bytes for a socket, see localrpc.ShortPath.
func ShortPath(path string) (short string, done func(), err error) { return localrpc.ShortPath(path) }
