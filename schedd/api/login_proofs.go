package api

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	ids "github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/identity/proof"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// browserLogin is how long a login of a browser is valid.
const browserLogin = 24 * time.Hour

// proofPrograms returns the programs that check proofs. They are beside the daemon's own.
func proofPrograms() proof.Programs {
	dir := ""
	if own, err := os.Executable(); err == nil {
		dir = filepath.Dir(own)
	}
	return proof.Programs{OIDC: []string{filepath.Join(dir, "roost-web"), proof.OIDCRole},
		PAM: []string{filepath.Join(dir, "roost-pam")}}
}

// callAddress is where a call comes from.
type callAddress struct {
	host  string // of another machine; empty: this host
	local bool   // over a unix socket
}

func addressOf(ctx context.Context) (a callAddress) {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return a
	}
	if host, _, err := net.SplitHostPort(p.Addr.String()); err == nil {
		a.host = host
	}
	a.local = p.Addr.Network() == "unix"
	return a
}

// loginIssuer makes logins of proofs that the web daemon carries.
type loginIssuer struct {
	node      string
	log       *slog.Logger
	logins    *login.Store
	proofs    *proof.Verifier                  // nil: there is no web daemon
	checkUser func(queue.CallerIdentity) error // says why the schedd does not serve an account, or nil
}

// checkWebLogin returns why a call may not bring a proof of the web daemon, or nil. It is
// for callers on this host, so that nobody elsewhere can try passwords here.
func (s *loginIssuer) checkWebLogin(ctx context.Context) error {
	switch {
	case s.proofs == nil:
		return fmt.Errorf("login: %w: no web daemon runs on %s: its node file has no web block", roost.Conflict,
			s.node)
	case !addressOf(ctx).local:
		return fmt.Errorf("login: %w: this is for the web daemon of %s", roost.PermissionDenied, s.node)
	}
	return nil
}

// BeginLogin begins a login at an OpenID provider or with the key of another login. It
// stores nothing: the state goes with the ticket.
func (s *Service) BeginLogin(ctx context.Context, req *wire.BeginLoginRequest) (*wire.BeginLoginReply, error) {
	if s.logins == nil {
		return nil, fmt.Errorf("login: %w: this schedd takes none", roost.Conflict)
	}
	return s.issuer.begin(ctx, req)
}

func (s *loginIssuer) begin(ctx context.Context, req *wire.BeginLoginRequest) (*wire.BeginLoginReply, error) {
	if err := s.checkWebLogin(ctx); err != nil {
		return nil, err
	}
	reply := &wire.BeginLoginReply{Node: s.node}
	var err error
	if req.GetProvider() == "" {
		reply.Ticket, err = s.proofs.Challenge()
	} else {
		reply.Ticket, reply.Url, err = s.proofs.BeginProvider(ctx, req.GetProvider(), req.GetFresh())
	}
	return reply, err
}

// Login exchanges a proof of who somebody is for a certificate. The caller is anybody.
func (s *Service) Login(ctx context.Context, req *wire.LoginRequest) (*wire.LoginReply, error) {
	if s.logins == nil {
		return nil, fmt.Errorf("login: %w: this schedd takes none", roost.Conflict)
	}
	from := "this host"
	if at := addressOf(ctx); at.host != "" {
		from = at.host
	}
	key, err := pki.ParseRequest(req.GetRequest())
	if err != nil {
		return nil, err
	}
	var made issuedLogin
	if req.GetSecret() != nil {
		made.der, made.login, err = s.logins.Redeem(req.GetSecret(), key, from, time.Now())
	} else {
		made, err = s.issuer.loginByProof(ctx, req, key)
	}
	if err != nil {
		s.log.Warn("refused a login", "from", from, "browser", req.GetFrom(), "error", err)
		return nil, err
	}
	l := &made.login
	s.log.Info("login", "user", l.User, "uid", l.UID, "from", l.From, "id", l.ID(), "parent", l.Parent)
	reply := &wire.LoginReply{Certificate: made.der, User: l.User, Node: s.node.Name}
	if !made.proved.IsZero() {
		reply.Proved = made.proved.UnixNano()
	}
	return reply, nil
}

// issuedLogin is a login with its certificate.
type issuedLogin struct {
	der    []byte
	login  login.Login
	proved time.Time
}

const maxFrom = 64 // bytes of what the web daemon says about where a browser is

// loginByProof makes a login of a proof that the web daemon carries.
func (s *loginIssuer) loginByProof(ctx context.Context, req *wire.LoginRequest,
	key ed25519.PublicKey) (made issuedLogin, err error) {
	if err := s.checkWebLogin(ctx); err != nil {
		return made, err
	}
	from := req.GetFrom()
	if len(from) > maxFrom {
		return made, fmt.Errorf("login: %w: no address has %d bytes", roost.Invalid, len(from))
	}
	now := time.Now()
	if d := req.GetDerived(); d != nil {
		made.der, made.login, err = s.deriveLogin(d, key, from, now)
		return made, err
	}
	var proved proof.Proved
	if p := req.GetPassword(); p != nil {
		proved, err = s.proofs.CheckPassword(ctx, proof.PasswordTry{User: p.GetUser(), Password: p.GetPassword(),
			From: from, Check: s.checkNotSystem})
	} else {
		p := req.GetProvider()
		proved, err = s.proofs.CheckProvider(ctx, proof.ProviderAnswer{Provider: p.GetProvider(), Ticket: p.GetTicket(),
			State: p.GetState(), Code: p.GetCode(), Issuer: p.GetIssuer()})
	}
	if err != nil {
		return made, err
	}
	who, err := s.personalAccount(proved.Account)
	if err != nil {
		return made, err
	}
	made.proved = proved.At
	made.der, made.login, err = s.logins.Issue(who, key, from, browserLogin, now)
	return made, err
}

// deriveLogin makes a login of another one, whose key has signed that.
func (s *loginIssuer) deriveLogin(d *wire.DerivedProof, key ed25519.PublicKey, from string,
	now time.Time) (der []byte, l login.Login, err error) {
	leaf, err := x509.ParseCertificate(d.GetCertificate())
	if err != nil {
		return nil, l, fmt.Errorf("login: %w: the certificate cannot be read: %w", roost.Invalid, err)
	}
	if err := s.logins.CheckCertificate(leaf); err != nil {
		return nil, l, err
	}
	if err := s.proofs.CheckStatement(proof.SignedStatement{Certificate: leaf, Challenge: d.GetTicket(),
		Host: d.GetHost(), Signature: d.GetSignature()}); err != nil {
		return nil, l, err
	}
	return s.logins.Derive(leaf, key, from, now)
}

// personalAccount returns the account of a person. Root and system accounts log in to the
// web daemon by the kernel's word alone, whatever a provider or a password says.
func (s *loginIssuer) personalAccount(name string) (who login.HostAccount, err error) {
	found, err := user.Lookup(name)
	var unknown user.UnknownUserError
	switch {
	case errors.As(err, &unknown):
		return who, fmt.Errorf("login: %w: there is no account %q on %s", roost.PermissionDenied, name, s.node)
	case err != nil:
		return who, fmt.Errorf("account %q: %w: %w", name, roost.Unavailable, err)
	}
	uid, uerr := strconv.ParseUint(found.Uid, 10, 32)
	gid, gerr := strconv.ParseUint(found.Gid, 10, 32)
	if err := errors.Join(uerr, gerr); err != nil {
		return who, fmt.Errorf("account %q: %w: %w", name, roost.Unavailable, err)
	}
	who = login.HostAccount{User: found.Username, UID: uint32(uid), GID: uint32(gid)}
	if isSystemAccount(who.UID) {
		return who, fmt.Errorf("login: %w: %s is an account of the system (uid %d), and those do not log in here",
			roost.PermissionDenied, name, who.UID)
	}
	return who, s.checkUser(queue.CallerIdentity{User: who.User, UID: who.UID, GID: who.GID, Host: s.node})
}

func isSystemAccount(uid uint32) bool { return uid < ids.FirstUser || ids.CheckUID(uid) != nil }

// checkNotSystem refuses accounts of the system. It knows nothing of accounts that are
// not there.
func (s *loginIssuer) checkNotSystem(name string) error {
	_, err := s.personalAccount(name)
	var unknown user.UnknownUserError
	if _, lerr := user.Lookup(name); errors.As(lerr, &unknown) {
		return nil
	}
	return err
}
