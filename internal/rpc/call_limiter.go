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

// callLimiter checks each call when its header has arrived and before anything else is
// read. It identifies the caller, checks its rights, and bounds its calls in progress.
type callLimiter struct {
	table    peer.AccessTable
	limits   methodLimits
	sizes    map[string]int
	refusals *logLimiter

	intake *intakeLimiter

	mu      sync.Mutex
	calls   map[string]int // calls in progress, by peer
	uploads map[string]int // of these, calls of users that send more than one message, by user
}

func newCallLimiter(table peer.AccessTable, refused *logLimiter) *callLimiter {
	return &callLimiter{table: table, limits: newMethodLimits(), sizes: messageSizes(), refusals: refused,
		intake: newIntakeLimiter(maxIntakePerPeer, maxIntake), calls: map[string]int{}, uploads: map[string]int{}}
}

// activeCall is a call in progress. Its timer ends it if the peer is too slow.
type activeCall struct {
	method      string
	peer        peer.Peer
	ctx         context.Context // ends with the call
	end         context.CancelCauseFunc
	limiter     *callLimiter
	intake      *callIntake   // bytes of its request; nil if they are not counted
	sendTimeout time.Duration // how long the peer may take to receive a message

	mu    sync.Mutex
	timer *time.Timer
}

type callKey struct{}

// callContext is the context of a call.
type callContext struct {
	context.Context
	call *activeCall
}

// Value returns the activeCall.
func (c callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

// Err returns DeadlineExceeded if the call was ended for slowness. gRPC sends this error
// to the peer, to which a cancelled call would look like its own cancellation.
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

// authorize returns the caller, if it may call a method.
func (d *callLimiter) authorize(ctx context.Context, method string) (peer.Peer, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return p, fmt.Errorf("%s: %w", method, roost.Unauthenticated)
	}
	if !d.table.Allows(p, method) {
		// The name of an unknown method is chosen by the peer.
		kind := "refused a call of an unknown method"
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

// startTimer ends the call unless it is stopped in time.
func (c *activeCall) startTimer(d time.Duration, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return // the call is already over
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

// timeoutCause returns the error of a call that was ended because its peer was too slow,
// and otherwise err.
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
		return Status(fmt.Errorf("call: %w", roost.Unauthenticated)) // the call did not pass through beginCall
	}
	err := timeoutCause(stream.Context(), handle(srv, &deadlineStream{stream, c}))
	if err != nil {
		logIfRefused(stream.Context(), err)
	}
	return Status(err)
}

// logIfRefused logs the error of a call if it is a refusal, for lack of rights or of
// room.
func logIfRefused(ctx context.Context, err error) {
	switch KindOf(err) {
	case roost.PermissionDenied, roost.Unauthenticated, roost.Exhausted:
		LogRefusal(ctx, "", err)
	}
}

// LogRefusal logs that a request was refused. Refused calls are logged automatically; a
// daemon calls LogRefusal if one call has several requests, or if a peer sends what no
// honest peer does. what is a constant text for the request, or "".
func LogRefusal(ctx context.Context, what string, why error) {
	if c, ok := ctx.Value(callKey{}).(*activeCall); ok {
		c.limiter.refusals.log(strings.TrimSpace("refused a call of "+c.method+" "+what), c.peer.String(), "why", why)
	}
}

// deadlineStream is a stream that ends if the peer does not take its messages in time.
type deadlineStream struct {
	grpc.ServerStream
	call *activeCall
}

// RecvMsg receives a message. If it is the only request of the call, its bytes count
// against the intake limits before it is read, until the call ends.
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

// logTooLong logs that gRPC refused to read a message. gRPC has already answered;
// FromStatus returns a better text for that answer.
func (c *activeCall) logTooLong(err error) error {
	if status.Code(err) == codes.ResourceExhausted {
		c.limiter.refusals.log("refused a message that is too long", c.peer.String(), "method", c.method, "most",
			c.limiter.sizes[c.method])
	}
	return err
}

// SendMsg sends a message. It blocks while the peer's flow control window is full.
func (t *deadlineStream) SendMsg(m any) error {
	t.call.startTimer(t.call.sendTimeout, "it did not read what it was sent")
	defer t.call.stopTimer()
	return t.ServerStream.SendMsg(m)
}
