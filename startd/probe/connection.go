package probe

import (
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/health"
)

// Bounds of an answer.
const (
	maxBody       = 16 << 10 // bytes that are read of it
	maxStatusLine = 512      // bytes
	maxStatusText = 80       // bytes of it that are passed on
)

// connection is one run of an HTTP or TCP check.
type connection struct {
	dueCheck
	kind     health.CheckKind
	socket   *socket // nil: it has none
	began    roost.BootTime
	deadline roost.BootTime
	request  []byte // that is not sent yet
	answer   []byte // the beginning of it
	done     bool
	result   health.Result
	place    int // in the heap
	poller   *poller
}

// requestText is what an HTTP check sends.
func requestText(c *health.Check, ports map[string]netip.AddrPort) []byte {
	if c.Kind != health.HTTPCheck {
		return nil
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s %s HTTP/1.1\r\n", cmp.Or(c.Method, "GET"), c.Path)
	own := false
	for _, h := range c.Headers {
		name, _, _ := strings.Cut(h, ":")
		own = own || strings.EqualFold(name, "Host")
		fmt.Fprintf(text, "%s\r\n", h)
	}
	if !own {
		fmt.Fprintf(text, "Host: %s\r\n", ports[c.Port])
	}
	text.WriteString("User-Agent: roost-check\r\nConnection: close\r\n\r\n")
	return []byte(text.String())
}

// connect opens the connection of a check, and sends its request if it can at once.
func (p *Prober) connect(d dueCheck, now roost.BootTime) {
	if d.watch.ended {
		return
	}
	check := d.watch.tracker.Check(d.Index)
	c := &connection{dueCheck: d, kind: check.Kind, began: now, deadline: now + check.Timeout,
		request: d.watch.request[d.Index], poller: p.poller, place: -1}
	to, ok := d.watch.target.Ports[check.Port]
	if !ok {
		c.fail(fmt.Sprintf("the task has no port %q", check.Port))
		p.finishIfDone(c, now)
		return
	}
	p.open++
	heap.Push(&p.connections, c)
	c.dial(to)
	p.pollAt, p.pollPause = now+firstPoll, firstPoll
	p.finishIfDone(c, now)
}

// dial begins the connection. On this machine it is there when connect(2) returns, though
// that says that it is in progress.
func (c *connection) dial(to netip.AddrPort) {
	family, address := 1, unix.Sockaddr(&unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()})
	if to.Addr().Unmap().Is4() {
		family, address = 0, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().Unmap().As4()}
	}
	var err error
	if c.socket, err = c.poller.take(family, c); err != nil {
		c.end(health.Result{Outcome: health.Unknown, Detail: err.Error()}) // we have no descriptors
		return
	}
	if err = unix.Connect(c.fd(), address); err != nil && err != unix.EINPROGRESS {
		c.fail(err.Error())
		return
	}
	if c.kind == health.TCPCheck {
		c.noteConnected()
	} else if c.send() || c.done {
		return
	}
	if !c.done {
		if err = c.poller.waitForWrite(c.socket, true); err != nil {
			c.end(health.Result{Outcome: health.Unknown, Detail: err.Error()})
		}
	}
}

func (c *connection) fd() int { return int(c.socket.fd) }

// noteConnected ends a TCP check if its connection was accepted or refused.
func (c *connection) noteConnected() {
	if n, err := unix.GetsockoptInt(c.fd(), unix.SOL_SOCKET, unix.SO_ERROR); err != nil || n != 0 {
		c.fail(unix.Errno(n).Error())
	} else if _, err = unix.Getpeername(c.fd()); err == nil {
		c.end(health.Result{Outcome: health.Passed})
	}
}

// send sends what is left of the request, and reports whether all of it is sent.
func (c *connection) send() bool {
	n, err := unix.Write(c.fd(), c.request)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR || err == unix.ENOTCONN:
		return false
	case err != nil:
		c.fail(err.Error())
		return false
	}
	c.request = c.request[n:]
	return len(c.request) == 0
}

// advance goes on with a connection that is ready.
func (c *connection) advance(buffer []byte) {
	if c.kind == health.TCPCheck {
		c.noteConnected()
		return
	}
	if len(c.request) > 0 {
		if !c.send() {
			return
		}
		c.poller.waitForWrite(c.socket, false)
	}
	n, err := unix.Read(c.fd(), buffer)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
	case err != nil:
		c.fail(err.Error())
	case n <= 0:
		c.fail("it closed the connection without an answer")
	default:
		c.read(buffer[:n])
	}
}

// read takes in a part of the answer. The status line is all that is wanted of it.
func (c *connection) read(part []byte) {
	line := part
	if len(c.answer) > 0 {
		c.answer = append(c.answer, part...)
		line = c.answer
	}
	end := bytes.IndexByte(line, '\n')
	switch {
	case end >= 0 && end <= maxStatusLine:
		c.end(statusResult(string(bytes.TrimRight(line[:end], "\r"))))
	case len(line) > maxStatusLine:
		c.fail("the answer is not HTTP")
	case len(c.answer) == 0:
		c.answer = append(c.answer, part...)
	}
}

// statusResult is what a status line says. Redirects are not followed: the task answers,
// and that is what was asked.
func statusResult(line string) health.Result {
	version, status, _ := strings.Cut(line, " ")
	code, err := strconv.Atoi(status[:min(len(status), 3)])
	if !strings.HasPrefix(version, "HTTP/1.") || err != nil || code < 100 {
		return health.Result{Outcome: health.Failed, Detail: "the answer is not HTTP"}
	}
	if code >= 200 && code < 400 {
		return health.Result{Outcome: health.Passed}
	}
	return health.Result{Outcome: health.Failed, Detail: printable(status)}
}

// printable returns what a task said, short and without control characters.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.ToValidUTF8(strings.TrimSpace(text[:min(len(text), maxStatusText)]), "")
}

func (c *connection) fail(detail string) {
	c.end(health.Result{Outcome: health.Failed, Detail: detail})
}

func (c *connection) end(r health.Result) { c.done, c.result = true, r }

// finishIfDone closes a connection that is done, and takes in its result.
func (p *Prober) finishIfDone(c *connection, now roost.BootTime) {
	if !c.done {
		return
	}
	if c.place >= 0 {
		c.close()
		heap.Remove(&p.connections, c.place)
		p.open--
	}
	if c.result.Outcome == health.Failed {
		late := max(c.began-c.At-startInterval, 0) + max(now-c.deadline, 0)
		c.result = health.Judge(c.watch.tracker.Check(c.Index), late, c.result.Detail)
	}
	p.finish(c.dueCheck, c.began, now, c.result)
}

// expireConnections ends the connections whose time is over. What is there to be read is
// read first: it may have come in time, and we are late.
func (p *Prober) expireConnections(now roost.BootTime) {
	for len(p.connections) > 0 && p.connections[0].deadline <= now {
		c := p.connections[0]
		if len(c.request) == 0 && c.kind == health.HTTPCheck {
			c.advance(p.buffer)
		}
		if !c.done {
			c.fail(fmt.Sprintf("no answer within %v", c.watch.tracker.Check(c.Index).Timeout))
		}
		p.finishIfDone(c, now)
	}
}

// close ends the connection.
func (c *connection) close() {
	if c.socket != nil {
		c.poller.put(c.socket)
		c.socket = nil
	}
}

// connectionHeap is a heap of connections by their deadlines.
type connectionHeap []*connection

func (h connectionHeap) Len() int           { return len(h) }
func (h connectionHeap) Less(i, j int) bool { return h[i].deadline < h[j].deadline }
func (h connectionHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push adds a connection.
func (h *connectionHeap) Push(x any) {
	c := x.(*connection)
	c.place = len(*h)
	*h = append(*h, c)
}

// Pop removes the last connection.
func (h *connectionHeap) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	return last
}
