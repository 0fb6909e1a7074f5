package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"
)

// localWindow is the bytes of replies that a daemon may send before they are taken.
const localWindow = streamWindow

// maxSocketIdle is how long a socket may be idle and still be reused. The server pings
// idle sockets after pingInterval, and closes them if nobody answers.
const maxSocketIdle = pingInterval / 2

// The values of HTTP/2 before the server sends its own (RFC 9113, section 6.5.2).
const (
	defaultWindow   = 65535
	defaultMaxFrame = 16384
)

// localSocket is a socket of a LocalConn with the state of HTTP/2 that outlives a call.
type localSocket struct {
	conn      net.Conn
	in        *bufio.Reader
	framer    *http2.Framer
	out       bytes.Buffer // frames that are not written yet
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

func newLocalSocket(conn net.Conn) *localSocket {
	s := &localSocket{conn: conn, in: bufio.NewReader(conn), isNew: true, nextID: 1, peerWindow: defaultWindow,
		connWindow: defaultWindow, maxFrame: defaultMaxFrame}
	s.framer = http2.NewFramer(&s.out, s.in)
	s.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.framer.MaxHeaderListSize = ordinaryMessageSize // the text of a refusal is a header
	s.headers = hpack.NewEncoder(&s.block)
	s.out.WriteString(http2.ClientPreface)
	s.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: localWindow})
	s.framer.WriteWindowUpdate(0, localWindow-defaultWindow)
	return s
}

// flush writes the frames.
func (s *localSocket) flush() error {
	_, err := s.conn.Write(s.out.Bytes())
	s.out.Reset()
	return err
}

// isSilent reports whether an idle socket may be reused. It has not been idle for long,
// and the server has neither closed it nor sent anything.
func (s *localSocket) isSilent() bool {
	sc, ok := s.conn.(syscall.Conn)
	if !ok || s.in.Buffered() > 0 || time.Since(s.idleSince) > maxSocketIdle {
		return false
	}
	raw, err := sc.SyscallConn()
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

// pingingReader reads from a socket until ctx ends. After pingInterval of silence it
// calls ping, and after pingTimeout more it fails: the daemon is stopped or hangs.
type pingingReader struct {
	ctx  context.Context
	conn net.Conn
	ping func()
}

// Read reads what has arrived.
func (r pingingReader) Read(p []byte) (int, error) {
	for patience := pingInterval; ; patience = pingTimeout {
		r.conn.SetReadDeadline(time.Now().Add(patience))
		if err := r.ctx.Err(); err != nil { // its end may have set a deadline before
			return 0, err
		}
		n, err := r.conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || r.ctx.Err() != nil {
			return n, err
		}
		if patience == pingTimeout {
			return 0, errors.New("the daemon does not answer pings")
		}
		r.ping()
	}
}
