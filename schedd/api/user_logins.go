package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/proof"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// OpenLogins makes ready for users of other machines, and for the web daemon of the node.
// It returns the identity to serve with. Where the schedd serves neither, that is the
// node's own.
func (s *Service) OpenLogins(stateDir string) (serving *rpc.Identity, err error) {
	if !s.takesOtherMachines() && s.node.Web == nil {
		return s.identity, nil
	}
	if s.logins, err = login.Open(filepath.Join(stateDir, "logins"), s.node.Name); err != nil {
		return nil, err
	}
	s.issuer = &loginIssuer{node: s.node.Name, log: s.log, logins: s.logins, checkUser: s.checkUser}
	if s.node.Web != nil {
		if s.issuer.proofs, err = proof.NewVerifier(s.node.Web, proofPrograms()); err != nil {
			return nil, err
		}
	}
	return s.logins.Identity(s.identity)
}

// takesOtherMachines reports whether users of other machines reach this schedd.
func (s *Service) takesOtherMachines() bool {
	return s.identity != nil && len(s.node.Schedd.Listen) > 0
}

// remoteCaller is a user who calls from another machine, with a login.
func (s *Service) remoteCaller(p peer.Peer) (queue.CallerIdentity, error) {
	if s.logins == nil || p.User == "" {
		return queue.CallerIdentity{},
			fmt.Errorf("%w: jobs are submitted over the schedd's unix socket, or with a login", roost.Unauthenticated)
	}
	account, err := s.logins.Account(p.Serial, time.Now())
	if err != nil {
		return queue.CallerIdentity{}, err
	}
	if account, err = checkLogin(account); err != nil {
		return queue.CallerIdentity{}, fmt.Errorf("login at %s: %w", s.node.Name, err)
	}
	who := queue.CallerIdentity{User: account.User, UID: account.UID, GID: account.GID, Host: s.node.Name,
		Admin: s.admins.IsAdmin(account.User, s.node.Name)}
	return who, s.checkUser(who)
}

// checkLogin compares a login with the accounts of this host as they are now. It refuses
// a user who no longer has an account, or whose uid belongs to another name.
func checkLogin(a login.HostAccount) (login.HostAccount, error) {
	number := strconv.FormatUint(uint64(a.UID), 10)
	found, err := user.LookupId(number)
	var unknown user.UnknownUserIdError
	switch {
	case errors.As(err, &unknown) && a.User == number: // known by the number only, as it was then
		return a, nil
	case err != nil:
		return a, fmt.Errorf("%w: the account %s cannot be found: %w", roost.Unauthenticated, a.User, err)
	case found.Username != a.User:
		return a, fmt.Errorf("%w: uid %d is %s here, and not %s any more: log in again", roost.Unauthenticated, a.UID,
			found.Username, a.User)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	a.GID = uint32(gid)
	return a, err
}

// LoginToken makes a token with which the caller can log in from another machine. Only
// the kernel of this host says who that is: a login makes no logins.
func (s *Service) LoginToken(ctx context.Context, req *wire.LoginTokenRequest) (*wire.LoginTokenReply, error) {
	who, err := s.callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if p, ok := peer.FromContext(ctx); !ok || !p.Local {
		return nil, fmt.Errorf("token: %w: run this on %s, where the kernel knows who you are", roost.PermissionDenied,
			s.node.Name)
	}
	reply := &wire.LoginTokenReply{Address: config.AdvertisedAddress(s.node.Schedd.Listen)}
	switch {
	case req.GetWeb() && (s.node.Web == nil || s.logins == nil):
		return nil, fmt.Errorf("token: %w: no web daemon runs on %s: its node file has no web block", roost.Conflict,
			s.node.Name)
	case req.GetWeb():
		reply.Address, reply.Url = s.node.LoginSocket(), s.node.Web.URL
	case !s.takesOtherMachines() || s.logins == nil:
		return nil, fmt.Errorf("token: %w: the schedd of %s cannot be reached from other machines: its node file "+
			"says nothing of listen in the schedd block", roost.Conflict, s.node.Name)
	}
	if err := s.checkUser(who); err != nil {
		return nil, err
	}
	token, expires, err := s.logins.MakeToken(login.HostAccount{User: who.User, UID: who.UID, GID: who.GID},
		login.TokenLifetimes{
			Token: tokenLife(req),
			Login: cmp.Or(time.Duration(req.GetValidity()), login.LoginValidity),
		}, time.Now())
	if err != nil {
		return nil, err
	}
	s.log.Info("token for a login", "user", who.User, "uid", who.UID, "web", req.GetWeb(), "expires", expires)
	reply.Token, reply.Expires = token.String(), expires.UnixNano()
	return reply, nil
}

// tokenLife returns how long a token can be used. A link stays in the history and on the
// screen of whoever asked for it, so that no caller gets one that lasts.
func tokenLife(req *wire.LoginTokenRequest) time.Duration {
	life := time.Duration(req.GetLife())
	if req.GetWeb() && (life == 0 || life > login.LinkLife) {
		return login.LinkLife
	}
	return cmp.Or(life, login.TokenLife)
}

// PilotToken has the authority of the pool make a token with which pilots of the caller
// join. They run the caller's tasks from this node, and nobody else's.
func (s *Service) PilotToken(ctx context.Context, req *wire.PilotTokenQuery) (*wire.PilotTokenReply, error) {
	who, err := s.callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkUser(who); err != nil {
		return nil, err
	}
	if s.node.AuthorityAt == "" || s.identity == nil {
		return nil, fmt.Errorf("token: %w: this pool has no authority that lets machines in: roost up is for one "+
			"machine, and roost init begins a pool of several", roost.Conflict)
	}
	conn, err := rpc.Dial(s.node.AuthorityAt, s.identity, peer.Authority)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, cellTimeout)
	defer cancel()
	made, err := wire.NewAuthorityClient(conn).MakePilotToken(ctx,
		&wire.PilotTokenRequest{User: who.User, Life: req.GetLife(), Uses: req.GetUses()})
	if err := rpc.FromStatus(err); err != nil {
		return nil, fmt.Errorf("authority at %s: %w", s.node.AuthorityAt, err)
	}
	s.log.Info("token for pilots", "user", who.User, "uid", who.UID, "pilots", made.GetInfo().GetUses())
	return &wire.PilotTokenReply{Token: made.GetToken(), Address: made.GetAddress(),
		Expires: made.GetInfo().GetExpires(), Owner: made.GetInfo().GetOwner()}, nil
}

// visibleLogins says whose logins a user may see and revoke: their own, and an
// administrator everybody's.
func visibleLogins(ctx context.Context, who queue.CallerIdentity) func(login.HostAccount) bool {
	all := isDaemonUser(ctx)
	return func(a login.HostAccount) bool { return all || a.UID == who.UID }
}

// Logins lists the logins that were given out.
func (s *Service) Logins(ctx context.Context, _ *wire.LoginsRequest) (*wire.LoginsReply, error) {
	who, err := s.callerOf(ctx)
	if err != nil {
		return nil, err
	}
	reply := &wire.LoginsReply{Node: s.node.Name}
	if s.logins == nil {
		return reply, nil
	}
	p, _ := peer.FromContext(ctx)
	for _, l := range s.logins.List(visibleLogins(ctx, who)) {
		reply.Logins = append(reply.Logins, loginInfo(&l, p.Serial))
	}
	return reply, nil
}

// Logout revokes a login.
func (s *Service) Logout(ctx context.Context, req *wire.LogoutRequest) (*wire.LoginInfo, error) {
	who, err := s.callerOf(ctx)
	if err != nil {
		return nil, err
	}
	p, _ := peer.FromContext(ctx)
	id := req.GetId()
	if id == "" {
		id = p.Serial
	}
	if s.logins == nil || id == "" {
		return nil, fmt.Errorf("login: %w: it is not said which one", roost.Invalid)
	}
	l, err := s.logins.Revoke(id, visibleLogins(ctx, who), time.Now())
	if err != nil {
		return nil, err
	}
	s.log.Info("login revoked", "user", l.User, "id", l.ID(), "by", who.User)
	return loginInfo(&l, p.Serial), nil
}

func loginInfo(l *login.Login, serial string) *wire.LoginInfo {
	m := &wire.LoginInfo{Id: l.ID(), User: l.User, From: l.From, Made: l.Made.UnixNano(), Expires: l.Expires.UnixNano(),
		Own: l.Serial == serial}
	if !l.Revoked.IsZero() {
		m.Revoked = l.Revoked.UnixNano()
	}
	return m
}

// localCure is what else a user of another submit node can do.
func localCure(who queue.CallerIdentity) string {
	if who.Origin == "" {
		return ""
	}
	return "; --local submits to the queue of " + who.Origin
}

// checkFilesLocal refuses jobs from another machine whose directory is not on this host,
// where their files are read and written.
func (s *Service) checkFilesLocal(ctx context.Context, who queue.CallerIdentity, specs []queue.SubmitSpec) error {
	p, _ := peer.FromContext(ctx)
	if p.Local && who.Origin == "" {
		return nil
	}
	for i := range specs {
		dir, _ := specs[i].Ad.Str(roost.AttrIwd)
		if mode, _ := specs[i].Ad.Str(roost.AttrTransfer); dir == "" || dir == "/" || mode == jobad.TransferStore {
			continue
		}
		agent, err := s.users.Agent(who.UID, who.GID)
		if err == nil {
			_, err = agent.Stat(ctx, filepath.Dir(dir), filepath.Base(dir))
		}
		if err != nil {
			return admission.JobOrdinal(fmt.Errorf("directory %s: %w: a job's files are where its queue is, and "+
				"%s cannot use it on %s: submit from a directory that is there, too, name one in the job file, or set "+
				"transfer = \"store\" there for a job in the queue of the cell%s",
				dir, roost.NoInput, who.User, s.node.Name, localCure(who)), i, specs)
		}
	}
	return nil
}
