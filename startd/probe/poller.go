package probe

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxEvents is how many events are taken at a time.
const maxEvents = 256

// poller waits for connections. Its epoll(7) set is itself in the set of the Go runtime:
// a thread that waited in epoll_wait(2) would hold up the others.
type poller struct {
	file        *os.File // the epoll set
	raw         syscall.RawConn
	wakeup      int // eventfd(2)
	events      []unix.EpollEvent
	connections map[int32]*connection
	ready       []readyEvent
}

type readyEvent struct{ connection *connection }

func newPoller() (*poller, error) {
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err = unix.SetNonblock(set, true); err != nil {
		unix.Close(set)
		return nil, err
	}
	q := &poller{file: os.NewFile(uintptr(set), "epoll"), events: make([]unix.EpollEvent, maxEvents),
		connections: make(map[int32]*connection)}
	if q.raw, err = q.file.SyscallConn(); err != nil {
		q.file.Close()
		return nil, err
	}
	if q.wakeup, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		q.file.Close()
		return nil, err
	}
	if err = q.control(unix.EPOLL_CTL_ADD, q.wakeup, unix.EPOLLIN); err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

func (q *poller) control(operation, fd int, events uint32) (err error) {
	e := unix.EpollEvent{Events: events, Fd: int32(fd)}
	controlErr := q.raw.Control(func(set uintptr) { err = unix.EpollCtl(int(set), operation, fd, &e) })
	return errors.Join(err, controlErr)
}

// add waits for a connection to become readable, or writable before its request is sent.
func (q *poller) add(c *connection, events uint32) error {
	q.connections[int32(c.fd)] = c
	return q.control(unix.EPOLL_CTL_ADD, c.fd, events)
}

// interrupt ends a wait. Several goroutines may call it.
func (q *poller) interrupt() {
	unix.Write(q.wakeup, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// wait returns the connections that are ready. None are when the time is over.
func (q *poller) wait(longest time.Duration) ([]readyEvent, error) {
	if err := q.file.SetReadDeadline(time.Now().Add(min(max(longest, 0), time.Hour))); err != nil {
		return nil, err
	}
	n := 0
	var err error
	poll := func(set uintptr) bool {
		n, err = unix.EpollWait(int(set), q.events, 0)
		return n > 0 || err != nil && err != unix.EINTR
	}
	if readErr := q.raw.Read(poll); readErr != nil && !errors.Is(readErr, os.ErrDeadlineExceeded) {
		return nil, readErr
	}
	if err != nil && err != unix.EINTR {
		return nil, err
	}
	q.ready = q.ready[:0]
	for _, e := range q.events[:max(n, 0)] {
		if c := q.connections[e.Fd]; c != nil {
			q.ready = append(q.ready, readyEvent{c})
		} else if int(e.Fd) == q.wakeup {
			var count [8]byte
			unix.Read(q.wakeup, count[:])
		}
	}
	return q.ready, nil
}

// remove forgets a connection, which is about to be closed.
func (q *poller) remove(c *connection) { delete(q.connections, int32(c.fd)) }

func (q *poller) close() {
	q.file.Close()
	unix.Close(q.wakeup)
}
