package session

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Scope is a kind of request that an API token may make. A browser's session may make all
// of them.
type Scope string

// The scopes.
const (
	Read    Scope = "read"    // lists, explanations and logs
	Submit  Scope = "submit"  // new jobs
	Act     Scope = "act"     // changes of jobs
	Metrics Scope = "metrics" // the daemons' metrics
	Admin   Scope = "admin"   // changes of what administrators keep
)

// Scopes lists all scopes.
func Scopes() []Scope { return []Scope{Read, Submit, Act, Metrics, Admin} }

// Way is how a session was logged in.
type Way string

// The ways.
const (
	ByLink     Way = "link"     // a link of roost web login
	ByToken    Way = "token"    // an API token
	ByProvider Way = "oidc"     // an OpenID provider
	ByPassword Way = "password" // a password that PAM knows
	ByKey      Way = "key"      // a statement signed with the key of roost login
)

// verifyInterval is how long a session is trusted before the schedd is asked again
// whether its login still holds.
const verifyInterval = 30 * time.Second

// Session is a login of one user. Its methods are safe for concurrent use.
type Session struct {
	ID      string // for lists; it gives no rights
	User    string
	Node    string // of the schedd
	Way     Way
	Scopes  []Scope // of an API token
	Created time.Time
	Expires time.Time
	From    string // address of the browser or program

	entry  *login.LoginEntry // nil: of a program without a schedd; see OpenLocal
	socket string
	Proved time.Time // when its user has shown who that is; zero: not known

	mu       sync.Mutex
	conn     *grpc.ClientConn
	shells   *grpc.ClientConn // for terminals
	lastUsed time.Time
	verified time.Time
	ended    chan struct{} // closed when the session is over
	isOver   bool
}

// Ended is closed when the session is over.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// May reports whether the session may make requests of a scope.
func (s *Session) May(scope Scope) bool {
	return s.Way != ByToken || slices.Contains(s.Scopes, scope)
}

// IsFresh reports whether its user has shown who that is a moment ago. Changes of what
// administrators keep require it of a browser, whose user may have left. A provider that
// remembers its user shows nothing.
func (s *Session) IsFresh(now time.Time) bool {
	return s.Way == ByToken || now.Sub(s.Proved) < freshness
}

const freshness = 15 * time.Minute

// Schedd returns the client with which the user's own login asks the schedd.
func (s *Session) Schedd() (wire.ScheddClient, error) { return s.client(&s.conn) }

// ScheddOfShells is Schedd for terminals. What a shell writes and nobody reads stays in
// the memory of this process up to the window of a stream, which is small here.
func (s *Session) ScheddOfShells() (wire.ScheddClient, error) {
	return s.client(&s.shells, grpc.WithStaticStreamWindowSize(shellWindow))
}

const shellWindow = 64 << 10 // bytes

// client returns a client on one of the session's connections, which it makes first.
func (s *Session) client(conn **grpc.ClientConn, more ...grpc.DialOption) (wire.ScheddClient, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver {
		return nil, errOver
	}
	if s.entry == nil {
		return nil, fmt.Errorf("session: %w: it is one of this machine alone", roost.Unavailable)
	}
	if *conn == nil {
		id, err := s.entry.Identity()
		if err != nil {
			return nil, err
		}
		if *conn, err = rpc.DialLogins(s.socket, id, more...); err != nil {
			return nil, err
		}
	}
	return wire.NewScheddClient(*conn), nil
}

var errOver = fmt.Errorf("session: %w: it is over: log in again", roost.Unauthenticated)

// Verify asks the schedd whether the login still holds, unless it said so a moment ago.
func (s *Session) Verify(ctx context.Context, now time.Time) error {
	return s.VerifyWithin(ctx, now, verifyInterval)
}

// VerifyWithin is Verify with the time for which the last answer is good.
func (s *Session) VerifyWithin(ctx context.Context, now time.Time, age time.Duration) error {
	if s.entry == nil { // it holds as long as the program that made it
		return nil
	}
	s.mu.Lock()
	recent := now.Sub(s.verified) < age
	s.mu.Unlock()
	if recent {
		return nil
	}
	schedd, err := s.Schedd()
	if err != nil {
		return err
	}
	_, err = schedd.Logins(ctx, &wire.LoginsRequest{})
	if err = rpc.FromStatus(err); err == nil {
		s.mu.Lock()
		s.verified = now
		s.mu.Unlock()
	}
	return err
}

// IsLoginError reports whether an error of the schedd means that the login holds no more.
func IsLoginError(err error) bool { return errors.Is(err, roost.Unauthenticated) }

// end closes the session's connection. Its calls fail.
func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver {
		return
	}
	s.isOver = true
	close(s.ended)
	for _, conn := range []*grpc.ClientConn{s.conn, s.shells} {
		if conn != nil {
			conn.Close()
		}
	}
}

// NoteUse notes that a request or a key of the session came.
func (s *Session) NoteUse(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastUsed = now
}

// isExpired reports whether the session is over by time.
func (s *Session) isExpired(now time.Time, idle time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !now.Before(s.Expires) || now.Sub(s.lastUsed) >= idle
}

// secretDigest is the digest of a cookie or token, under which it is stored.
type secretDigest [sha256.Size]byte

func digestOf(secret string) secretDigest { return sha256.Sum256([]byte(secret)) }
