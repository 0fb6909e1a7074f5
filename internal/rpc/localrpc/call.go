package localrpc

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/roost-batch/roost/internal/wire/codes"
)

// localCall is one call on a socket. One goroutine reads frames; another one may take
// messages meanwhile.
type localCall struct {
	ctx    context.Context
	conn   *Conn
	socket *localSocket
	id     uint32
	stop   func() bool // ends the watch over ctx

	mu        sync.Mutex // guards what follows, and the writing of frames
	changed   *sync.Cond
	window    int64  // bytes that the server accepts on the stream
	received  []byte // messages that nobody has taken
	isAwaited bool   // somebody waits for the rest of a message
	unacked   int    // bytes received on the stream since the last update of its window
	hasEnded  bool
	result    *CallError // of a call that has ended; nil: it has succeeded
	isBroken  bool       // the socket cannot be used again
}

func newLocalCall(ctx context.Context, conn *Conn, s *localSocket) *localCall {
	c := &localCall{ctx: ctx, conn: conn, socket: s, id: s.nextID, window: s.peerWindow}
	c.changed = sync.NewCond(&c.mu)
	s.nextID += 2
	s.conn.SetDeadline(time.Time{})
	c.stop = context.AfterFunc(ctx, func() { s.conn.SetDeadline(time.Unix(1, 0)) })
	s.in.Reset(pingingReader{ctx, s.conn, c.ping})
	return c
}

// finish gives the socket back.
func (c *localCall) finish() {
	c.mu.Lock()
	usable := c.hasEnded && !c.isBroken
	c.mu.Unlock()
	c.conn.release(c.socket, c.stop() && usable)
}

// begin writes the headers of the call, with the next message.
func (c *localCall) begin(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeHeaders(method)
}

// sendMessage writes a message. It waits while the server does not accept more of it, and
// reports false if the call has ended.
func (c *localCall) sendMessage(message []byte, isLast bool) bool {
	rest := make([]byte, messagePrefix+len(message))
	binary.BigEndian.PutUint32(rest[1:], uint32(len(message)))
	copy(rest[messagePrefix:], message)
	return c.sendData(rest, isLast)
}

// sendData writes a part of the request; none of it after the last ends the request.
func (c *localCall) sendData(rest []byte, isLast bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for isFirst := true; isFirst || len(rest) > 0; {
		n := min(int64(len(rest)), c.window, c.socket.connWindow, c.socket.maxFrame)
		if n > 0 || len(rest) == 0 {
			c.window -= n
			c.socket.connWindow -= n
			flags := byte(0)
			if isLast && n == int64(len(rest)) {
				flags = endStreamFlag
			}
			c.socket.out = appendFrame(c.socket.out, dataFrame, flags, c.id, rest[:n]...)
			rest, isFirst = rest[n:], false
			continue
		}
		c.flush()
		c.mu.Unlock()
		more := c.readFrame()
		c.mu.Lock()
		if !more {
			c.isBroken = true // the request is not complete
			return false
		}
	}
	c.flush()
	return true
}

// writeHeaders begins the call; c.mu is locked.
func (c *localCall) writeHeaders(method string) {
	s := c.socket
	s.block.Reset()
	write := func(name, value string) { s.headers.WriteField(hpack.HeaderField{Name: name, Value: value}) }
	write(":method", "POST")
	write(":scheme", "http")
	write(":path", method)
	write(":authority", "roost")
	write("content-type", "application/grpc")
	write("user-agent", "roost")
	write("te", "trailers")
	if late, ok := c.ctx.Deadline(); ok {
		write("grpc-timeout", timeoutHeader(time.Until(late)))
	}
	s.out = appendFrame(s.out, headersFrame, endHeadersFlag, c.id, s.block.Bytes()...)
}

// timeoutHeader is a duration as gRPC sends it: at most eight digits and a unit.
func timeoutHeader(d time.Duration) string {
	const most = 99_999_999
	if ms := (d + time.Millisecond - 1) / time.Millisecond; ms <= most {
		return strconv.FormatInt(int64(max(ms, 1)), 10) + "m"
	}
	return strconv.FormatInt(min(int64(d/time.Second), most), 10) + "S"
}

// flush writes frames; c.mu is locked. After an error there may still be a status to be
// read.
func (c *localCall) flush() {
	if err := c.socket.flush(); err != nil {
		c.isBroken = true
	}
}

func (c *localCall) ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.socket.out = appendFrame(c.socket.out, pingFrame, 0, 0, make([]byte, 8)...)
	c.flush()
}

// readAll reads until the call has ended.
func (c *localCall) readAll() {
	for c.readFrame() {
	}
}

// readFrame reads one frame, and reports whether more are to come.
func (c *localCall) readFrame() bool {
	c.mu.Lock()
	ended := c.hasEnded
	c.mu.Unlock()
	if ended {
		return false
	}
	f, err := c.socket.frames.read()
	var fields headerFields
	if err == nil && f.kind == headersFrame {
		fields, err = c.socket.frames.readHeaders(f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.fail(err)
	} else {
		c.applyFrame(f, fields)
	}
	c.changed.Broadcast()
	return !c.hasEnded
}

// end ends the call; c.mu is locked. A nil result is success.
func (c *localCall) end(result *CallError) { c.hasEnded, c.result = true, result }

// fail ends the call after an error of the socket; c.mu is locked.
func (c *localCall) fail(err error) {
	c.isBroken = true
	switch {
	case c.ctx.Err() != nil:
		c.end(contextError(c.ctx.Err()))
	case c.socket.isNew:
		c.end(callErrorf(codes.Unavailable, "%s%q", connErrorPrefix, "error reading server preface: "+err.Error()))
	default:
		c.end(callErrorf(codes.Unavailable, "error reading from server: %v", err))
	}
}

// applyFrame changes the state of the call by a frame of the server; c.mu is locked.
// Fields are those of a frame of headers.
func (c *localCall) applyFrame(f frame, fields headerFields) {
	s, own := c.socket, f.stream == c.id
	s.isNew = false
	switch f.kind {
	case settingsFrame:
		c.applySettings(f)
	case pingFrame:
		if !f.has(ackFlag) {
			s.out = appendFrame(s.out, pingFrame, ackFlag, 0, f.payload...)
			c.flush()
		}
	case windowUpdateFrame:
		if own {
			c.window += int64(f.number())
		} else if f.stream == 0 {
			s.connWindow += int64(f.number())
		}
	case goAwayFrame:
		if c.isBroken = true; f.number() < c.id {
			c.fail(fmt.Errorf("the daemon ends (%s)", errorCodeText(binary.BigEndian.Uint32(f.payload[4:]))))
		}
	case dataFrame:
		c.applyData(f, own)
	case headersFrame:
		if own {
			c.applyHeaders(f, fields)
		}
	case resetFrame:
		if own {
			late, ok := c.ctx.Deadline()
			c.end(resetError(binary.BigEndian.Uint32(f.payload), ok && !late.After(time.Now())))
		}
	}
}

// applyData takes a part of a reply; c.mu is locked.
func (c *localCall) applyData(f frame, own bool) {
	c.socket.unacked += f.length
	if own {
		c.unacked += f.length
		c.received = append(c.received, f.payload...)
	}
	c.updateWindows()
	if own && f.has(endStreamFlag) {
		c.end(callErrorf(codes.Internal, "the server ended the call without a status"))
	}
}

// applySettings applies what the server accepts; c.mu is locked.
func (c *localCall) applySettings(f frame) {
	if f.has(ackFlag) {
		return
	}
	for list := f.payload; len(list) >= 6; list = list[6:] {
		switch v := int64(binary.BigEndian.Uint32(list[2:])); binary.BigEndian.Uint16(list) {
		case initialWindowSetting:
			c.window += v - c.socket.peerWindow
			c.socket.peerWindow = v
		case maxFrameSetting:
			c.socket.maxFrame = v
		}
	}
	c.socket.out = appendFrame(c.socket.out, settingsFrame, ackFlag, 0)
	c.flush()
}

// updateWindows lets the server send more, once a quarter of the window was taken. What
// nobody has taken counts as taken only while somebody waits for a longer message.
func (c *localCall) updateWindows() {
	waiting := len(c.received)
	if c.isAwaited {
		waiting = 0
	}
	if n := c.unacked - waiting; !c.hasEnded && n >= StreamWindow/4 {
		c.socket.writeWindowUpdate(c.id, uint32(n))
		c.unacked -= n
		if n := c.socket.unacked - waiting; n > 0 {
			c.socket.writeWindowUpdate(0, uint32(n))
			c.socket.unacked -= n
		}
		c.flush()
	}
}
