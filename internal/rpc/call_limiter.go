package rpc

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// callLimiter looks at each call when its header has come and before anything else is
// read: who calls, whether he may, and how many calls he has already.
type callLimiter struct {
	table    peer.AccessTable
	limits   methodLimits
	sizes    map[string]int
	refusals *logLimiter

	intake *intakeLimiter

	mu      sync.Mutex
	calls   map[string]int // at once, of each peer
	uploads map[string]int // of those, the ones of users that send more than one message
}

func newCallLimiter(table peer.AccessTable, refused *logLimiter) *callLimiter {
	return &callLimiter{table: table, limits: newMethodLimits(), sizes: messageSizes(), refusals: refused,
		intake: newIntakeLimiter(maxIntakePerPeer, maxIntake), calls: map[string]int{}, uploads: map[string]int{}}
}

// activeCall is a call that is under way. Its timer ends it where a peer makes it wait
// for too long.
type activeCall struct {
	method      string
	peer        peer.Peer
	ctx         context.Context // ends with the call
	end         context.CancelCauseFunc
	limiter     *callLimiter
	intake      *callIntake   // bytes of its request; nil where they are not counted
	sendTimeout time.Duration // for the peer to take what it is sent

	mu    sync.Mutex
	timer *time.Timer
}

type callKey struct{}

// callContext is the context of a call.
type callContext struct {
	context.Context
	call *activeCall
}

// Value finds the call.
func (c callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

// Err says that time was up where the call was ended for that: gRPC tells the peer what
// it finds here, and a cancelled call would look like his own doing.
func (c callContext) Err() error {
	err := c.Context.Err()
	if err != nil && KindOf(context.Cause(c.Context)) == roost.Exhausted {
		return context.DeadlineExceeded
	}
	return err
}

// beginCall is called with the header of a call. It runs in the goroutine that reads the
// connection.
func (d *callLimiter) beginCall(ctx context.Context, info *tap.Info) (context.Context, error) {
	p, err := d.authorize(ctx, info.FullMethodName)
	if err != nil {
		return nil, Status(err)
	}
	counted := !isTrusted(p)
	upload := isUser(p) && !d.limits.unary[info.FullMethodName]
	if counted {
		if err := d.addCall(p.String(), info.FullMethodName, upload); err != nil {
			return nil, Status(err)
		}
	}
	c := &activeCall{method: info.FullMethodName, peer: p, limiter: d, sendTimeout: nodeSendTimeout}
	if isUser(p) {
		c.sendTimeout = userSendTimeout
	}
	c.ctx, c.end = context.WithCancelCause(ctx)
	if counted {
		c.intake = d.intake.beginCall(p.String())
	}
	context.AfterFunc(ctx, func() {
		c.stopTimer()
		if counted {
			c.intake.release()
			d.removeCall(p.String(), upload)
		}
	})
	return callContext{c.ctx, c}, nil
}

// authorize says who calls, if he may call that method.
func (d *callLimiter) authorize(ctx context.Context, method string) (peer.Peer, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return p, fmt.Errorf("%s: %w", method, roost.Unauthenticated)
	}
	if !d.table.Allows(p, method) {
		// A method that is not ours has a name that the peer has chosen.
		kind := "refused a call of a method that there is not"
		if _, ours := d.table[method]; ours {
			kind = "refused a call of " + method
		}
		d.refusals.log(kind, p.String(), "roles", p.Certified)
		return p, fmt.Errorf("%s: %w", method, roost.PermissionDenied)
	}
	return p, nil
}

func (d *callLimiter) addCall(who, method string, upload bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if upload && d.uploads[who] >= maxUploadsPerUser {
		d.refusals.log("refused a call: too many at once that send more than one message", who, "calls",
			maxUploadsPerUser)
		return fmt.Errorf("%s: %w: %s has %d such calls under way, and no more are taken at once; let some of them end",
			method, roost.Exhausted, who, maxUploadsPerUser)
	}
	if d.calls[who] >= maxCallsPerPeer {
		d.refusals.log("refused a call: too many at once", who, "calls", maxCallsPerPeer)
		return fmt.Errorf("%s: %w: %s has %d calls under way, and no more are taken at once; let some of them end",
			method, roost.Exhausted, who, maxCallsPerPeer)
	}
	d.calls[who]++
	if upload {
		d.uploads[who]++
	}
	return nil
}

func (d *callLimiter) removeCall(who string, upload bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if upload {
		if d.uploads[who]--; d.uploads[who] == 0 {
			delete(d.uploads, who)
		}
	}
	if d.calls[who]--; d.calls[who] == 0 {
		delete(d.calls, who)
	}
}

// startTimer ends the call unless over is called in time.
func (c *activeCall) startTimer(d time.Duration, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return // it is over already
	}
	c.timer = time.AfterFunc(d, func() {
		c.limiter.refusals.log("ended a call of "+c.method, c.peer.String(), "why", why, "after", d)
		c.end(fmt.Errorf("%s: %w: %s within %v", c.method, roost.Exhausted, why, d))
	})
}

func (c *activeCall) stopTimer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
}

// timeoutCause is the error of a call that was ended because its peer was too slow, and
// otherwise err.
func timeoutCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && KindOf(cause) == roost.Exhausted {
		return cause
	}
	return err
}

func (d *callLimiter) handleStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
	handle grpc.StreamHandler) error {
	c, ok := stream.Context().Value(callKey{}).(*activeCall)
	if !ok {
		return Status(fmt.Errorf("call: %w", roost.Unauthenticated)) // it did not come by the desk
	}
	err := timeoutCause(stream.Context(), handle(srv, &deadlineStream{stream, c}))
	if err != nil {
		logIfRefused(stream.Context(), err)
	}
	return Status(err)
}

// logIfRefused logs what a call returns if that is a refusal: because of who the caller
// is, or because there is no room.
func logIfRefused(ctx context.Context, err error) {
	switch KindOf(err) {
	case roost.PermissionDenied, roost.Unauthenticated, roost.Exhausted:
		LogRefusal(ctx, "", err)
	}
}

// LogRefusal logs that a call did not get what it wanted. What a call returns is logged
// where it says that the caller may not; a daemon calls this where one call asks for
// several things, or sends what no honest peer does; what is one of a few words for what
// was asked, or "".
func LogRefusal(ctx context.Context, what string, why error) {
	if c, ok := ctx.Value(callKey{}).(*activeCall); ok {
		c.limiter.refusals.log(strings.TrimSpace("refused a call of "+c.method+" "+what), c.peer.String(), "why", why)
	}
}

// deadlineStream is a stream whose messages are taken in time, or it ends.
type deadlineStream struct {
	grpc.ServerStream
	call *activeCall
}

// RecvMsg receives a message. Where it is the only request of the call, its bytes are
// counted as held before they are read, and until the call ends.
func (t *deadlineStream) RecvMsg(m any) error {
	c := t.call
	if !c.limiter.limits.unary[c.method] {
		return c.logTooLong(t.ServerStream.RecvMsg(m))
	}
	if err := c.intake.acquire(c.ctx, c.limiter.sizes[c.method]); err != nil {
		return err
	}
	c.startTimer(requestTimeout, "its request did not arrive")
	err := c.logTooLong(t.ServerStream.RecvMsg(m))
	c.stopTimer()
	if message, ok := m.(proto.Message); ok && err == nil {
		c.intake.releaseExcess(proto.Size(message))
	}
	return err
}

// logTooLong logs what gRPC refused to read. gRPC has answered already; FromStatus finds
// better words for that.
func (c *activeCall) logTooLong(err error) error {
	if status.Code(err) == codes.ResourceExhausted {
		c.limiter.refusals.log("refused a message that is too long", c.peer.String(), "method", c.method, "most",
			c.limiter.sizes[c.method])
	}
	return err
}

// SendMsg sends a message. It waits while the peer has a window's worth that it has not
// taken.
func (t *deadlineStream) SendMsg(m any) error {
	t.call.startTimer(t.call.sendTimeout, "what it was sent was not taken")
	defer t.call.stopTimer()
	return t.ServerStream.SendMsg(m)
}
