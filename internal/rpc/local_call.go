package rpc

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// localCall is one call on a socket. One goroutine reads frames; another one may take
// messages meanwhile.
type localCall struct {
	ctx    context.Context
	conn   *LocalConn
	socket *localSocket
	id     uint32
	stop   func() bool // ends the watch over ctx

	mu        sync.Mutex // guards what follows, and the writing of frames
	changed   *sync.Cond
	window    int64  // bytes that the server accepts on the stream
	received  []byte // messages that nobody has taken
	isAwaited bool   // somebody waits for the rest of a message
	unacked   int    // bytes received on the stream since the last update of its window
	header    metadata.MD
	trailer   metadata.MD
	result    *status.Status // nil: the call has not ended
	isBroken  bool           // the socket cannot be used again
}

func newLocalCall(ctx context.Context, conn *LocalConn, s *localSocket) *localCall {
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
	usable := c.result != nil && !c.isBroken
	c.mu.Unlock()
	c.conn.release(c.socket, c.stop() && usable)
}

// send writes the request. It waits while the server does not accept more of it.
func (c *localCall) send(method string, request []byte) {
	rest := make([]byte, messagePrefix+len(request))
	binary.BigEndian.PutUint32(rest[1:], uint32(len(request)))
	copy(rest[messagePrefix:], request)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeHeaders(method)
	for len(rest) > 0 {
		n := min(int64(len(rest)), c.window, c.socket.connWindow, c.socket.maxFrame)
		if n > 0 {
			c.window -= n
			c.socket.connWindow -= n
			c.socket.framer.WriteData(c.id, n == int64(len(rest)), rest[:n])
			rest = rest[n:]
			continue
		}
		c.flush()
		c.mu.Unlock()
		more := c.readFrame()
		c.mu.Lock()
		if !more {
			c.isBroken = true // the request is not complete
			return
		}
	}
	c.flush()
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
	s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.id, BlockFragment: s.block.Bytes(), EndHeaders: true})
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
	c.socket.framer.WritePing(false, [8]byte{})
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
	ended := c.result != nil
	c.mu.Unlock()
	if ended {
		return false
	}
	frame, err := c.socket.framer.ReadFrame()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.fail(err)
	} else {
		c.applyFrame(frame)
	}
	c.changed.Broadcast()
	return c.result == nil
}

// fail ends the call after an error of the socket; c.mu is locked.
func (c *localCall) fail(err error) {
	c.isBroken = true
	switch {
	case c.ctx.Err() != nil:
		c.result = status.FromContextError(c.ctx.Err())
	case c.socket.isNew:
		c.result = status.New(codes.Unavailable, connErrorPrefix+strconv.Quote("error reading server preface: "+
			err.Error()))
	default:
		c.result = status.New(codes.Unavailable, "error reading from server: "+err.Error())
	}
}

// applyFrame changes the state of the call by a frame of the server; c.mu is locked.
func (c *localCall) applyFrame(frame http2.Frame) {
	s, own := c.socket, frame.Header().StreamID == c.id
	s.isNew = false
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		c.applySettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			s.framer.WritePing(true, f.Data)
			c.flush()
		}
	case *http2.WindowUpdateFrame:
		if own {
			c.window += int64(f.Increment)
		} else if f.StreamID == 0 {
			s.connWindow += int64(f.Increment)
		}
	case *http2.GoAwayFrame:
		if c.isBroken = true; f.LastStreamID < c.id {
			c.fail(fmt.Errorf("the daemon ends (%v)", f.ErrCode))
		}
	case *http2.DataFrame:
		s.unacked += int(f.Length)
		if own {
			c.unacked += int(f.Length)
			c.received = append(c.received, f.Data()...)
		}
		c.updateWindows()
		if own && f.StreamEnded() {
			c.result = status.New(codes.Internal, "the server ended the call without a status")
		}
	case *http2.MetaHeadersFrame:
		if own {
			c.applyHeaders(f)
		}
	case *http2.RSTStreamFrame:
		if own {
			late, ok := c.ctx.Deadline()
			c.result = resetStatus(f.ErrCode, ok && !late.After(time.Now()))
		}
	}
}

// applySettings applies what the server accepts; c.mu is locked.
func (c *localCall) applySettings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
		c.window += int64(v) - c.socket.peerWindow
		c.socket.peerWindow = int64(v)
	}
	if v, ok := f.Value(http2.SettingMaxFrameSize); ok {
		c.socket.maxFrame = int64(v)
	}
	c.socket.framer.WriteSettingsAck()
	c.flush()
}

// updateWindows lets the server send more, once a quarter of the window was taken. What
// nobody has taken counts as taken only while somebody waits for a longer message.
func (c *localCall) updateWindows() {
	waiting := len(c.received)
	if c.isAwaited {
		waiting = 0
	}
	if n := c.unacked - waiting; c.result == nil && n >= localWindow/4 {
		c.socket.framer.WriteWindowUpdate(c.id, uint32(n))
		c.unacked -= n
		if n := c.socket.unacked - waiting; n > 0 {
			c.socket.framer.WriteWindowUpdate(0, uint32(n))
			c.socket.unacked -= n
		}
		c.flush()
	}
}
