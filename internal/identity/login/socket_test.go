package login

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// peerNamer answers with who asks, if that is somebody with a valid login.
type peerNamer struct {
	wire.UnimplementedScheddServer
	logins *Store
}

func (n peerNamer) Logins(ctx context.Context, _ *wire.LoginsRequest) (*wire.LoginsReply, error) {
	p, _ := peer.FromContext(ctx)
	_, err := n.logins.Account(p.Serial, time.Now())
	return &wire.LoginsReply{Node: p.String()}, err
}

// TestLoginSocketIgnoresAccount asks on the socket for a web daemon. The account of the
// process counts for nothing there, even if it is root or the daemons' own: only a login
// does, until it is revoked.
func TestLoginSocketIgnoresAccount(t *testing.T) {
	dir, err := os.MkdirTemp("", "roost-logins")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	k := open(t, filepath.Join(dir, "logins"))
	id, err := k.Identity(nil)
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewServer(id, peer.MethodAccess())
	wire.RegisterScheddServer(server, peerNamer{logins: k})
	address := "unix:" + filepath.Join(dir, "s")
	l, err := rpc.ListenLogins(address, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	t.Cleanup(server.Stop)
	ask := func(id *rpc.Identity) (string, error) {
		conn, err := rpc.DialLogins(address, id)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		reply, err := wire.NewScheddClient(conn).Logins(ctx, &wire.LoginsRequest{})
		return reply.GetNode(), rpc.FromStatus(err)
	}
	token, _, err := k.MakeToken(ann, TokenLifetimes{time.Minute, time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	request, err := NewRequest(token)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := ask(request.Identity); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("without a login it answers %q, %v", who, err)
	}
	der, made, err := k.Redeem(token.Secret[:], request.Key.Public().(ed25519.PublicKey), "test",
		time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(made.Expires); left > time.Hour+time.Minute || left < 30*time.Minute {
		t.Errorf("the login is valid for %v", left)
	}
	e, err := request.Entry(t.Context(), "n2", address, made.User, der)
	if err != nil {
		t.Fatal(err)
	}
	user, err := e.Identity()
	if err != nil {
		t.Fatal(err)
	}
	if who, err := ask(user); who != "login of ann" || err != nil {
		t.Errorf("with a login: %q, %v", who, err)
	}
	if _, err := k.Revoke(made.Serial, func(HostAccount) bool { return true }, time.Now()); err != nil {
		t.Fatal(err)
	}
	if who, err := ask(user); err == nil {
		t.Errorf("a revoked login is %q", who)
	}
}
