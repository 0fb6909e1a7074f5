package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

const (
	scheddTimeout = 5 * time.Second  // how long a login waits for the schedd
	proofTimeout  = 20 * time.Second // the same where the schedd has to ask others
	retryPause    = 50 * time.Millisecond
)

// Proof is what a browser or program brings, and the schedd checks. One field is set.
type Proof struct {
	Token    string // of roost web login or roost web token add
	Provider *wire.ProviderProof
	Password *wire.PasswordProof
	Derived  *wire.DerivedProof
}

// Way returns how a session with the proof was logged in.
func (p *Proof) Way() Way {
	switch {
	case p.Provider != nil:
		return ByProvider
	case p.Password != nil:
		return ByPassword
	case p.Derived != nil:
		return ByKey
	}
	return ByLink
}

// request prepares a login with the proof.
func (p *Proof) request() (*login.LoginRequest, *wire.LoginRequest, error) {
	if p.Token == "" {
		g, err := login.NewSocketRequest()
		return g, &wire.LoginRequest{Provider: p.Provider, Password: p.Password, Derived: p.Derived}, err
	}
	token, err := login.ParseToken(p.Token)
	if err != nil {
		return nil, nil, fmt.Errorf("login: %w: the link is not complete: run roost web login again", roost.Invalid)
	}
	g, err := login.NewRequest(token)
	return g, &wire.LoginRequest{Secret: token.Secret[:]}, err
}

// exchange exchanges a proof for a login at the schedd. proved is when its user has shown
// who that is; zero: not known.
func (k *Store) exchange(ctx context.Context, p Proof, from string) (e *login.LoginEntry, proved time.Time, err error) {
	request, asked, err := p.request()
	if err != nil {
		return nil, proved, err
	}
	asked.From = from
	if asked.Request, err = request.CertRequest(); err != nil {
		return nil, proved, err
	}
	conn, err := rpc.DialLogins(k.socket, request.Identity)
	if err != nil {
		return nil, proved, err
	}
	defer conn.Close()
	wait := scheddTimeout
	if p.Provider != nil || p.Password != nil {
		wait = proofTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var reply *wire.LoginReply
	for {
		reply, err = wire.NewScheddClient(conn).Login(ctx, asked)
		if err = rpc.FromStatus(err); err == nil {
			break
		}
		// The answer may be lost if very many log in: the same key gets the same
		// certificate for a token. Other proofs are good once.
		if !errors.Is(err, roost.Unavailable) || ctx.Err() != nil || p.Token == "" {
			return nil, proved, err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return nil, proved, err
		}
	}
	switch {
	case p.Way() == ByLink || p.Way() == ByKey:
		proved = k.now()
	case reply.GetProved() > 0:
		proved = time.Unix(0, reply.GetProved())
	}
	e, err = request.Entry(ctx, reply.GetNode(), k.socket, reply.GetUser(), reply.GetCertificate())
	return e, proved, err
}

// Begin begins a login at an OpenID provider, or with the key of another login if the
// name is empty. With fresh the provider asks its user again.
func (k *Store) Begin(ctx context.Context, provider string, fresh bool) (*wire.BeginLoginReply, error) {
	request, err := login.NewSocketRequest()
	if err != nil {
		return nil, err
	}
	conn, err := rpc.DialLogins(k.socket, request.Identity)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	reply, err := wire.NewScheddClient(conn).BeginLogin(ctx, &wire.BeginLoginRequest{Provider: provider, Fresh: fresh})
	return reply, rpc.FromStatus(err)
}
