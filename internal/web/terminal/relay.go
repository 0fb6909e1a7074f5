package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/session"
	"github.com/roost-batch/roost/internal/wire"
)

// Bounds on one terminal.
const (
	inputWindow  = 64 << 10  // bytes of input that the shell has not taken
	outputWindow = 256 << 10 // bytes of output that the browser has not shown
	inputChunk   = 32 << 10  // bytes of input that travel at once
	maxMessage   = 64 << 10  // bytes of a message of the browser
	writeTimeout = 10 * time.Second

	pingPeriod = 15 * time.Second
	// A login that was revoked is noticed within the sum of these two.
	verifyPeriod  = 1500 * time.Millisecond
	verifyTimeout = 3 * time.Second
	verifyPause   = 50 * time.Millisecond
)

// browserMessage is a text message of the browser.
type browserMessage struct {
	Rows    uint32 `json:"rows"` // with columns: a new size of the window
	Columns uint32 `json:"columns"`
	Shown   int    `json:"shown"` // bytes of output that were shown since the last message
}

// serverMessage is a text message to the browser.
type serverMessage struct {
	Taken  int    `json:"taken,omitempty"` // bytes of input that the shell has taken since the last message
	Ended  bool   `json:"ended,omitempty"` // the shell is over, with one of the following
	Code   int32  `json:"code,omitempty"`
	Signal int32  `json:"signal,omitempty"`
	Error  string `json:"error,omitempty"`
	Cure   string `json:"cure,omitempty"`
}

// Causes of an end that are no errors of the schedd.
var (
	errShellEnded  = errors.New("the shell has ended")
	errBrowserGone = errors.New("the browser has gone")
	errProtocol    = fmt.Errorf("terminal: %w: the browser broke the protocol", roost.Invalid)
	errSessionOver = fmt.Errorf("terminal: %w: the session is over: log in again", roost.Unauthenticated)
)

// relay carries one terminal.
//
//	0 <= len(input) <= inputWindow
//	0 <= unshown    <= outputWindow + one message of the shell
type relay struct {
	session *session.Session
	conn    *websocket.Conn
	shell   grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput]

	mu      sync.Mutex
	input   []byte           // that the shell has not taken
	resize  *wire.ShellInput // the newest size that the shell does not know; nil: none
	unshown int              // bytes of output that the browser has not shown
	status  serverMessage    // of the shell's end
	hasWork chan struct{}    // gets a value when there is input or a size
	hasRoom chan struct{}    // gets a value when output was shown
	cancel  context.CancelCauseFunc
	workers sync.WaitGroup
}

func newRelay(s *session.Session, conn *websocket.Conn) *relay {
	conn.SetReadLimit(maxMessage)
	return &relay{session: s, conn: conn, hasWork: make(chan struct{}, 1), hasRoom: make(chan struct{}, 1)}
}

// run opens the shell and carries it until its end. It returns an error only where the
// session's login holds no more.
func (r *relay) run(ctx context.Context, first *wire.ShellInput) error {
	ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	cause := r.open(ctx, first)
	if cause == nil {
		// A read that is cancelled closes the connection. So the reader ends with the
		// connection, after the last message.
		reading := context.WithoutCancel(ctx)
		r.workers.Go(func() { r.cancel(r.readBrowser(reading)) })
		var carriers sync.WaitGroup
		for _, carry := range []func(context.Context) error{r.sendInput, r.sendOutput, r.watchSession, r.ping} {
			carriers.Go(func() { r.cancel(carry(ctx)) })
		}
		<-ctx.Done()
		carriers.Wait()
		cause = r.explainEnd(context.Cause(ctx))
	}
	r.sayEnd(cause)
	r.conn.CloseNow()
	r.workers.Wait()
	if session.IsLoginError(cause) {
		return cause
	}
	return nil
}

// explainEnd returns why a connection to the schedd was closed: the session is over, or
// its login was revoked. The schedd closes all connections of a revoked login at once, so
// the first question may fail as the shell did: it is repeated until there is an answer.
func (r *relay) explainEnd(cause error) error {
	if r.isOver() {
		return errSessionOver
	}
	if !errors.Is(rpc.FromStatus(cause), roost.Unavailable) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.Background(), verifyTimeout)
	defer cancel()
	for {
		switch err := r.session.VerifyWithin(ctx, time.Now(), 0); {
		case r.isOver():
			return errSessionOver
		case session.IsLoginError(err):
			return err
		case !errors.Is(err, roost.Unavailable):
			return cause
		}
		select {
		case <-time.After(verifyPause):
		case <-ctx.Done():
			return cause
		}
	}
}

// isOver reports whether the session is over.
func (r *relay) isOver() bool {
	select {
	case <-r.session.Ended():
		return true
	default:
		return false
	}
}

// open starts the shell with the login of the session.
func (r *relay) open(ctx context.Context, first *wire.ShellInput) error {
	schedd, err := r.session.ScheddOfShells()
	if err != nil {
		return err
	}
	if r.shell, err = schedd.Shell(ctx); err != nil {
		return err
	}
	if err := r.shell.Send(first); err != nil && !errors.Is(err, io.EOF) { // the cause of EOF comes with Recv
		return err
	}
	return nil
}

// sayEnd tells the browser how the terminal ended, and closes the connection.
func (r *relay) sayEnd(cause error) {
	code, last := websocket.StatusNormalClosure, serverMessage{Ended: true}
	switch {
	case errors.Is(cause, errBrowserGone):
		return
	case errors.Is(cause, errShellEnded):
		last = r.status
	default:
		p := route.ProblemOf(cause)
		last.Error, last.Cure = p.Detail, p.Cure
		code = websocket.StatusPolicyViolation
		if errors.Is(cause, context.Canceled) {
			code, last.Error = websocket.StatusGoingAway, "the web daemon is stopping"
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	if r.tell(ctx, last) == nil {
		r.conn.Close(code, "")
	}
}

// tell sends a text message.
func (r *relay) tell(ctx context.Context, m serverMessage) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return r.conn.Write(ctx, websocket.MessageText, text)
}

// write sends the browser a message in time, or reports that it has gone. A write that
// is cancelled would close the connection before the last message.
func (r *relay) write(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if f(ctx) != nil {
		return errBrowserGone
	}
	return nil
}

// wake notes an event in a channel of one place.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watchSession returns when the session is over, or when its login holds no more. A
// schedd that does not answer in time cannot say that it holds.
func (r *relay) watchSession(ctx context.Context) error {
	ticks := time.NewTicker(verifyPeriod)
	defer ticks.Stop()
	for {
		select {
		case now := <-ticks.C:
			asked, cancel := context.WithTimeout(ctx, verifyTimeout)
			err := r.session.VerifyWithin(asked, now, verifyPeriod/2)
			cancel()
			if err != nil {
				return err
			}
		case <-r.session.Ended():
			return errSessionOver
		case <-ctx.Done():
			return nil
		}
	}
}

// ping finds out that a browser has gone without a word.
func (r *relay) ping(ctx context.Context) error {
	ticks := time.NewTicker(pingPeriod)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			if err := r.write(ctx, r.conn.Ping); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
