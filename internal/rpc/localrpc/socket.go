package localrpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"time"

	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"
)

// maxSocketIdle is how long a socket may be idle and still be reused. The server pings
// idle sockets after PingInterval, and closes them if nobody answers.
const maxSocketIdle = PingInterval / 2

// The values of HTTP/2 before the server sends its own (RFC 9113, section 6.5.2).
const (
	defaultWindow   = 65535
	defaultMaxFrame = 16384
)

// localSocket is a socket of a Conn with the state of HTTP/2 that outlives a call.
type localSocket struct {
	conn      *os.File
	in        *bufio.Reader
	frames    *frameReader
	out       []byte // frames that are not written yet
	headers   *hpack.Encoder
	block     bytes.Buffer // what headers encodes
	idleSince time.Time

	isNew      bool   // the server has not sent anything
	nextID     uint32 // of streams: 1, 3, 5, …
	peerWindow int64  // bytes that the server accepts on each new stream
	connWindow int64  // bytes that the server accepts on all streams
	maxFrame   int64  // bytes of a frame that the server accepts
	unacked    int    // bytes received on all streams since the last update of the window
}

func newLocalSocket(conn *os.File) *localSocket {
	s := &localSocket{conn: conn, in: bufio.NewReader(conn), isNew: true, nextID: 1, peerWindow: defaultWindow,
		connWindow: defaultWindow, maxFrame: defaultMaxFrame}
	s.frames = newFrameReader(s.in)
	s.headers = hpack.NewEncoder(&s.block)
	s.out = append(s.out, clientPreface...)
	settings := binary.BigEndian.AppendUint32([]byte{0, enablePushSetting}, 0)
	settings = binary.BigEndian.AppendUint32(append(settings, 0, initialWindowSetting), StreamWindow)
	s.out = appendFrame(s.out, settingsFrame, 0, 0, settings...)
	s.writeWindowUpdate(0, StreamWindow-defaultWindow)
	return s
}

// writeWindowUpdate lets the server send more on a stream, or on all if stream is 0.
func (s *localSocket) writeWindowUpdate(stream, more uint32) {
	s.out = appendFrame(s.out, windowUpdateFrame, 0, stream, binary.BigEndian.AppendUint32(nil, more)...)
}

// flush writes the frames.
func (s *localSocket) flush() error {
	_, err := s.conn.Write(s.out)
	s.out = s.out[:0]
	return err
}

// isSilent reports whether an idle socket may be reused. It has not been idle for long,
// and the server has neither closed it nor sent anything.
func (s *localSocket) isSilent() bool {
	if s.in.Buffered() > 0 || time.Since(s.idleSince) > maxSocketIdle {
		return false
	}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	err = raw.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		silent = errors.Is(err, unix.EAGAIN)
	})
	return err == nil && silent
}

// pingingReader reads from a socket until ctx ends. After PingInterval of silence it
// calls ping, and after PingTimeout more it fails: the daemon is stopped or hangs.
type pingingReader struct {
	ctx  context.Context
	conn *os.File
	ping func()
}

// Read reads what has arrived.
func (r pingingReader) Read(p []byte) (int, error) {
	for patience := PingInterval; ; patience = PingTimeout {
		r.conn.SetReadDeadline(time.Now().Add(patience))
		if err := r.ctx.Err(); err != nil { // its end may have set a deadline before
			return 0, err
		}
		n, err := r.conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || r.ctx.Err() != nil {
			return n, err
		}
		if patience == PingTimeout {
			return 0, errors.New("the daemon does not answer pings")
		}
		r.ping()
	}
}
