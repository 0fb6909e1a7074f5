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
	"github.com/roost-batch/roost/internal/auth"
)

// desk looks at each call when its header has come and before anything else is read: who calls, whether he may, and how many calls he has already.
type desk struct {
	table   auth.Table
	bounds  bounded
	sizes   map[string]int
	refused *told

	intake *intake

	mu      sync.Mutex
	calls   map[string]int // at once, of each peer
	uploads map[string]int // of those, the ones of users that send more than one message
}

func newDesk(table auth.Table, refused *told) *desk {
	return &desk{table: table, bounds: bounds(), sizes: sizes(), refused: refused, intake: newIntake(maxHeldOf, maxHeld), calls: map[string]int{}, uploads: map[string]int{}}
}

// call is a call that is under way. Its timer ends it where a peer makes it wait for too long.
type call struct {
	method string
	peer   auth.Peer
	ctx    context.Context // ends with the call
	end    context.CancelCauseFunc
	desk   *desk
	held   *held         // bytes of its request; nil where they are not counted
	limit  time.Duration // for the peer to take what it is sent

	mu    sync.Mutex
	timer *time.Timer
}

type callKey struct{}

// called is the context of a call.
type called struct {
	context.Context
	call *call
}

// Value finds the call.
func (c called) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

// Err says that time was up where the call was ended for that: gRPC tells the peer what it finds here, and a cancelled call would look like his own doing.
func (c called) Err() error {
	err := c.Context.Err()
	if err != nil && KindOf(context.Cause(c.Context)) == roost.Exhausted {
		return context.DeadlineExceeded
	}
	return err
}

// tap is called with the header of a call. It runs in the goroutine that reads the connection.
func (d *desk) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	p, err := d.admit(ctx, info.FullMethodName)
	if err != nil {
		return nil, Status(err)
	}
	counted := !trusted(p)
	upload := person(p) && !d.bounds.once[info.FullMethodName]
	if counted {
		if err := d.count(p.String(), info.FullMethodName, upload); err != nil {
			return nil, Status(err)
		}
	}
	c := &call{method: info.FullMethodName, peer: p, desk: d, limit: slowNode}
	if person(p) {
		c.limit = slowUser
	}
	c.ctx, c.end = context.WithCancelCause(ctx)
	if counted {
		c.held = d.intake.of(p.String())
	}
	context.AfterFunc(ctx, func() {
		c.over()
		if counted {
			c.held.release()
			d.uncount(p.String(), upload)
		}
	})
	return called{c.ctx, c}, nil
}

// admit says who calls, if he may call that method.
func (d *desk) admit(ctx context.Context, method string) (auth.Peer, error) {
	p, ok := auth.FromContext(ctx)
	if !ok {
		return p, fmt.Errorf("%s: %w", method, roost.Unauthenticated)
	}
	if !d.table.Allows(p, method) {
		// A method that is not ours has a name that the peer has chosen.
		kind := "refused a call of a method that there is not"
		if _, ours := d.table[method]; ours {
			kind = "refused a call of " + method
		}
		d.refused.tell(kind, p.String(), "roles", p.Certified)
		return p, fmt.Errorf("%s: %w", method, roost.PermissionDenied)
	}
	return p, nil
}

func (d *desk) count(who, method string, upload bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if upload && d.uploads[who] >= maxUploadsOf {
		d.refused.tell("refused a call: too many at once that send more than one message", who, "calls", maxUploadsOf)
		return fmt.Errorf("%s: %w: %s has %d such calls under way, and no more are taken at once; let some of them end", method, roost.Exhausted, who, maxUploadsOf)
	}
	if d.calls[who] >= maxCallsOf {
		d.refused.tell("refused a call: too many at once", who, "calls", maxCallsOf)
		return fmt.Errorf("%s: %w: %s has %d calls under way, and no more are taken at once; let some of them end", method, roost.Exhausted, who, maxCallsOf)
	}
	d.calls[who]++
	if upload {
		d.uploads[who]++
	}
	return nil
}

func (d *desk) uncount(who string, upload bool) {
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

// within ends the call unless over is called in time.
func (c *call) within(d time.Duration, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return // it is over already
	}
	c.timer = time.AfterFunc(d, func() {
		c.desk.refused.tell("ended a call of "+c.method, c.peer.String(), "why", why, "after", d)
		c.end(fmt.Errorf("%s: %w: %s within %v", c.method, roost.Exhausted, why, d))
	})
}

func (c *call) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
}

// late is the error of a call that was ended because its peer was too slow, and otherwise err.
func late(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && KindOf(cause) == roost.Exhausted {
		return cause
	}
	return err
}

func (d *desk) stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	c, ok := stream.Context().Value(callKey{}).(*call)
	if !ok {
		return Status(fmt.Errorf("call: %w", roost.Unauthenticated)) // it did not come by the desk
	}
	err := late(stream.Context(), handle(srv, &timed{stream, c}))
	if err != nil {
		refusal(stream.Context(), err)
	}
	return Status(err)
}

// refusal logs what a call returns if that is a refusal: because of who the caller is, or because there is no room.
func refusal(ctx context.Context, err error) {
	switch KindOf(err) {
	case roost.PermissionDenied, roost.Unauthenticated, roost.Exhausted:
		Refused(ctx, "", err)
	}
}

// Refused logs that a call did not get what it wanted. What a call returns is logged where it says that the caller may not; a daemon calls this where one
// call asks for several things, or sends what no honest peer does; what is one of a few words for what was asked, or "".
func Refused(ctx context.Context, what string, why error) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.desk.refused.tell(strings.TrimSpace("refused a call of "+c.method+" "+what), c.peer.String(), "why", why)
	}
}

// timed is a stream whose messages are taken in time, or it ends.
type timed struct {
	grpc.ServerStream
	call *call
}

// RecvMsg receives a message. Where it is the only request of the call, its bytes are counted as held before they are read, and until the call ends.
func (t *timed) RecvMsg(m any) error {
	c := t.call
	if !c.desk.bounds.once[c.method] {
		return c.tooLong(t.ServerStream.RecvMsg(m))
	}
	if err := c.held.take(c.ctx, c.desk.sizes[c.method]); err != nil {
		return err
	}
	c.within(arriveTimeout, "its request did not arrive")
	err := c.tooLong(t.ServerStream.RecvMsg(m))
	c.over()
	if message, ok := m.(proto.Message); ok && err == nil {
		c.held.shrink(proto.Size(message))
	}
	return err
}

// tooLong logs what gRPC refused to read. gRPC has answered already; FromStatus finds better words for that.
func (c *call) tooLong(err error) error {
	if status.Code(err) == codes.ResourceExhausted {
		c.desk.refused.tell("refused a message that is too long", c.peer.String(), "method", c.method, "most", c.desk.sizes[c.method])
	}
	return err
}

// SendMsg sends a message. It waits while the peer has a window's worth that it has not taken.
func (t *timed) SendMsg(m any) error {
	t.call.within(t.call.limit, "what it was sent was not taken")
	defer t.call.over()
	return t.ServerStream.SendMsg(m)
}
