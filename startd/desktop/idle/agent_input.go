package idle

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/boottime"
)

// AgentCommand is the command of the program that runs RunInputAgent.
const AgentCommand = "idle-agent"

// Messages between the guard and the input agent. Each is one packet with its kind and a
// number. Those of the guard carry an open device, and the number identifies the device
// later, with its deviceKind in the upper half.
const (
	msgAgentReady  = 'R' // the agent has dropped its rights and is ready
	msgInput       = 'T' // there was input at that instant
	msgDeviceGone  = 'G' // the device of that number cannot be read any more
	msgWatchDevice = 'W' // read that device, too
)

const messageSize = 9

func encodeMessage(kind byte, n uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{kind}, n)
}

func parseMessage(text []byte) (kind byte, n uint64, ok bool) {
	if len(text) != messageSize {
		return 0, 0, false
	}
	return text[0], binary.LittleEndian.Uint64(text[1:]), true
}

// RunInputAgent runs the process that sees what people type. It reads the devices that it
// gets over the socket and reports, at most every 50 ms, the time of the last input, but
// never the input itself. It needs no rights, and ends when the other side does.
func RunInputAgent(socket *os.File) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // no other process of its user can inspect it
		return err
	}
	for _, resource := range []int{unix.RLIMIT_CORE, unix.RLIMIT_FSIZE} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{}); err != nil {
			return err
		}
	}
	conn, err := packetConn(socket)
	if err != nil {
		return err
	}
	a := &inputAgent{conn: conn, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	defer conn.Close()
	a.send(msgAgentReady, 0)
	go a.reportInput()
	defer close(a.stop)
	for {
		kind, n, fd, err := receiveMessage(conn)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind != msgWatchDevice || fd < 0 {
			continue
		}
		go a.watchDevice(os.NewFile(uintptr(fd), "input"), n)
	}
}

// packetConn makes a connection from one end of a socket pair.
func packetConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("the input agent's socket is none of the file system's family")
	}
	return conn, nil
}

// receiveMessage receives one message and the descriptor that came with it; -1 for none.
func receiveMessage(conn *net.UnixConn) (kind byte, n uint64, fd int, err error) {
	text, rights := make([]byte, messageSize+1), make([]byte, unix.CmsgSpace(4))
	size, extra, _, _, err := conn.ReadMsgUnix(text, rights)
	if err == nil && size == 0 {
		err = io.EOF
	}
	if err != nil {
		return 0, 0, -1, err
	}
	fd = -1
	if controls, err := unix.ParseSocketControlMessage(rights[:extra]); err == nil && len(controls) == 1 {
		if fds, err := unix.ParseUnixRights(&controls[0]); err == nil && len(fds) == 1 {
			fd = fds[0]
		}
	}
	kind, n, _ = parseMessage(text[:size])
	return kind, n, fd, nil
}

// inputAgent is the shared state of the agent's goroutines.
type inputAgent struct {
	conn      *net.UnixConn
	sender    sync.Mutex
	lastInput atomic.Int64 // boot time of the last input
	wake      chan struct{}
	stop      chan struct{}
}

func (a *inputAgent) send(kind byte, n uint64) {
	a.sender.Lock()
	defer a.sender.Unlock()
	_, _ = a.conn.Write(encodeMessage(kind, n)) // if the other side is gone this one ends at the next receive
}

// reportInput reports input: at once, and then as often as needed to tell whether it
// continues.
func (a *inputAgent) reportInput() {
	for {
		select {
		case <-a.stop:
			return
		case <-a.wake:
		}
		a.send(msgInput, uint64(a.lastInput.Load()))
		select {
		case <-a.stop:
			return
		case <-time.After(inputReportInterval):
		}
	}
}

// watchDevice watches one device until it is unplugged.
func (a *inputAgent) watchDevice(f *os.File, n uint64) {
	defer f.Close()
	kind := deviceKind(n >> 32)
	buffer := make([]byte, 64*eventSize)
	for {
		size, err := f.Read(buffer)
		if err != nil {
			a.send(msgDeviceGone, n&(1<<32-1))
			return
		}
		at, ok := lastInputEvent(buffer[:size], kind, boottime.Now())
		clear(buffer[:size]) // the input itself is discarded
		if !ok {
			continue
		}
		a.lastInput.Store(int64(at))
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}
