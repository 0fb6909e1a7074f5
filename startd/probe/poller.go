package probe

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	maxEvents      = 256 // that are taken at a time
	maxIdleSockets = 256 // of each address family
)

// poller tells which connections are ready. Its epoll(7) set is asked and never waited
// for: the first answer of many would wake the prober, and each further one again. What
// wakes it would cost more than the answers.
type poller struct {
	set     int // the epoll set
	events  []unix.EpollEvent
	sockets []*socket // by slot; nil: the slot is free
	unused  []int32   // free slots
	idle    [2][]*socket
	ready   []*connection
}

// socket serves one connection after the other. Naively each connection has a socket of
// its own. To make one, to have the kernel wait for it and to close it costs more than a
// third of a check. connect(2) to no address dissolves a connection, as a close without
// linger does, and leaves the socket as new.
type socket struct {
	fd, slot   int32
	family     int // index of poller.idle
	wantsWrite bool
	run        *connection // nil: it is idle
}

var families = [...]int{unix.AF_INET, unix.AF_INET6}

func newPoller() (*poller, error) {
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &poller{set: set, events: make([]unix.EpollEvent, maxEvents)}, nil
}

func (q *poller) control(operation int, s *socket, events uint32) error {
	return unix.EpollCtl(q.set, operation, int(s.fd), &unix.EpollEvent{Events: events, Fd: s.slot})
}

// take returns a socket for a connection. The poller waits until it is readable.
func (q *poller) take(family int, run *connection) (*socket, error) {
	if last := len(q.idle[family]) - 1; last >= 0 {
		s := q.idle[family][last]
		q.idle[family] = q.idle[family][:last]
		s.run = run
		return s, nil
	}
	fd, err := unix.Socket(families[family], unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s := &socket{fd: int32(fd), family: family, run: run}
	if last := len(q.unused) - 1; last >= 0 {
		s.slot, q.unused = q.unused[last], q.unused[:last]
		q.sockets[s.slot] = s
	} else {
		s.slot = int32(len(q.sockets))
		q.sockets = append(q.sockets, s)
	}
	if err = q.control(unix.EPOLL_CTL_ADD, s, unix.EPOLLIN|unix.EPOLLET); err != nil {
		q.discard(s)
		return nil, err
	}
	return s, nil
}

// waitForWrite has the poller wait until a socket is writable, too, or no longer.
func (q *poller) waitForWrite(s *socket, wanted bool) error {
	if s.wantsWrite == wanted {
		return nil
	}
	events := uint32(unix.EPOLLIN | unix.EPOLLET)
	if wanted {
		events |= unix.EPOLLOUT
	}
	s.wantsWrite = wanted
	return q.control(unix.EPOLL_CTL_MOD, s, events)
}

// put ends the connection of a socket by a reset. So nothing of it is left in the kernel,
// which would keep thousands of them for a minute each.
func (q *poller) put(s *socket) {
	s.run = nil
	if len(q.idle[s.family]) < maxIdleSockets && q.waitForWrite(s, false) == nil && disconnect(int(s.fd)) == nil {
		q.idle[s.family] = append(q.idle[s.family], s)
		return
	}
	q.discard(s)
}

// disconnect makes a socket as new.
func disconnect(fd int) error {
	nowhere := unix.RawSockaddrInet4{Family: unix.AF_UNSPEC}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&nowhere)),
		unsafe.Sizeof(nowhere))
	if errno != 0 {
		return errno
	}
	return nil
}

// discard closes a socket.
func (q *poller) discard(s *socket) {
	unix.SetsockoptLinger(int(s.fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	unix.Close(int(s.fd))
	q.sockets[s.slot] = nil
	q.unused = append(q.unused, s.slot)
}

// poll returns connections that are ready now, and whether there may be more.
func (q *poller) poll() (ready []*connection, more bool, err error) {
	n, err := unix.EpollWait(q.set, q.events, 0)
	if err == unix.EINTR {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	q.ready = q.ready[:0]
	for _, e := range q.events[:n] {
		if s := q.sockets[e.Fd]; s != nil && s.run != nil { // an idle one tells its disconnection
			q.ready = append(q.ready, s.run)
		}
	}
	return q.ready, n == len(q.events), nil
}

func (q *poller) close() {
	for _, s := range q.sockets {
		if s != nil {
			q.discard(s)
		}
	}
	unix.Close(q.set)
}
