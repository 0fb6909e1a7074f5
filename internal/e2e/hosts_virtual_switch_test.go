package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// virtualSwitch is a switch in this process, in place of the kernel's. Each host's port
// is a TAP device, and this process forwards each frame. So frames can be lost, late,
// reordered, duplicated, or dropped in one direction, even on kernels without netem.
type virtualSwitch struct {
	mu            sync.RWMutex
	ports         map[string]*os.File     // by host
	owner         map[hardwareAddr]string // by address: the host that has it
	faults        map[*linkFault]struct{} // present faults
	delayedFrames atomic.Int64            // number of frames that are delayed
	lost          atomic.Int64            // since the start, as are the next two
	carried       atomic.Int64
}

// hardwareAddr is the address of a port.
type hardwareAddr [6]byte

// linkFault is a fault of the frames from some hosts to some others.
type linkFault struct {
	from, to []string // nil: all
	loss     float64  // part of the frames; 1: the link is cut
	doubled  float64
	delay    time.Duration
	spread   time.Duration // random addition to the delay, up to this, which reorders frames
}

// Bounds of the switch. A frame is at most the devices' 1500 bytes plus a header. Delayed
// frames beyond a number are lost, as in a switch whose memory is full.
const (
	maxFrameSize     = 2048
	maxDelayedFrames = 10000
)

// newSwitch creates a switch without ports, or skips the test where that is not possible.
// It ends with the test.
func newSwitch(t *testing.T) *virtualSwitch {
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		t.Skipf("SKIPPED: no switch of one's own without TAP devices: %v; no frame is lost or late", err)
	} else {
		f.Close()
	}
	e := &virtualSwitch{ports: map[string]*os.File{}, owner: map[hardwareAddr]string{},
		faults: map[*linkFault]struct{}{}}
	t.Cleanup(e.close)
	return e
}

func (e *virtualSwitch) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, port := range e.ports {
		port.Close()
	}
	clear(e.ports)
}

// addPort creates the device eth0 in a network namespace, without an address, and
// forwards its frames from then on.
func (e *virtualSwitch) addPort(host, space string) error {
	var port *os.File
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread is in that namespace, and ends with the goroutine
		port, err = tapIn("/run/netns/" + space)
	}()
	<-done
	if err != nil {
		return fmt.Errorf("a plug for %s: %w", host, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ports[host] = port
	go e.readFrames(host, port)
	return nil
}

// tapIn moves the calling thread into a network namespace and creates a device there.
func tapIn(space string) (*os.File, error) {
	at, err := os.Open(space)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	if err := unix.Setns(int(at.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, os.NewSyscallError("setns", err)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq("eth0")
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("TUNSETIFF", err)
	}
	return os.NewFile(uintptr(fd), "tap"), nil
}

// readFrames forwards what a host sends until its port is closed.
func (e *virtualSwitch) readFrames(host string, port *os.File) {
	buffer := make([]byte, maxFrameSize)
	for {
		n, err := port.Read(buffer)
		switch {
		case errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EBADFD):
			return
		case err != nil: // the device is down
			waitReal(context.Background(), 10*time.Millisecond)
		case n >= 14:
			e.forward(host, slices.Clone(buffer[:n]))
		}
	}
}

// forward sends a frame to its host, or to all if its host is unknown.
func (e *virtualSwitch) forward(from string, frame []byte) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if source := hardwareAddr(frame[6:12]); e.owner[source] != from {
		e.mu.RUnlock()
		e.mu.Lock()
		e.owner[source] = from
		e.mu.Unlock()
		e.mu.RLock()
	}
	if to, known := e.owner[hardwareAddr(frame[:6])]; known {
		e.sendFrame(from, to, frame)
		return
	}
	for to := range e.ports {
		if to != from {
			e.sendFrame(from, to, frame)
		}
	}
}

// sendFrame applies the faults to a frame and sends it. The lock is held.
func (e *virtualSwitch) sendFrame(from, to string, frame []byte) {
	copies, delay := 1, time.Duration(0)
	for w := range e.faults {
		if w.from != nil && !slices.Contains(w.from, from) || w.to != nil && !slices.Contains(w.to, to) {
			continue
		}
		if w.loss > 0 && rand.Float64() < w.loss {
			e.lost.Add(1)
			return
		}
		if w.doubled > 0 && rand.Float64() < w.doubled {
			copies++
		}
		if delay += w.delay; w.spread > 0 {
			delay += rand.N(w.spread)
		}
	}
	port := e.ports[to]
	if port == nil {
		return
	}
	for range copies {
		if delay == 0 {
			port.Write(frame) // a device that is down refuses it
			e.carried.Add(1)
		} else if e.delayedFrames.Add(1) <= maxDelayedFrames {
			time.AfterFunc(delay, func() {
				e.delayedFrames.Add(-1)
				port.Write(frame)
				e.carried.Add(1)
			})
		} else {
			e.delayedFrames.Add(-1)
			e.lost.Add(1)
		}
	}
}

// setFault starts a fault, and clearFault ends it. Delayed frames still arrive.
func (e *virtualSwitch) setFault(w *linkFault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults[w] = struct{}{}
}

func (e *virtualSwitch) clearFault(w *linkFault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.faults, w)
}

// TestVirtualSwitch sends packets between two hosts through the switch. With different
// faults all arrive, none, only one way, late, or twice.
func TestVirtualSwitch(t *testing.T) {
	n := newNetwork(t)
	n.virtualSwitch = newSwitch(t)
	n.attachHost("a", "10.111.0.1")
	n.attachHost("b", "10.111.0.2")
	send, receive := datagrams(t, n, "a", "10.111.0.1"), datagrams(t, n, "b", "10.111.0.2")
	to := &unix.SockaddrInet4{Port: 9, Addr: [4]byte{10, 111, 0, 2}}
	back := &unix.SockaddrInet4{Port: 9, Addr: [4]byte{10, 111, 0, 1}}
	// passes sends some packets one way, waits until the expected number has arrived, and
	// for a moment more, and counts them.
	passes := func(from, at int, to unix.Sockaddr, want int) (arrived int, took time.Duration) {
		began := time.Now()
		for i := range 5 {
			if err := unix.Sendto(from, []byte{byte(i)}, 0, to); err != nil {
				t.Fatal(err)
			}
		}
		wait := func(limit time.Duration) bool {
			limits := unix.NsecToTimeval(int64(limit))
			if err := unix.SetsockoptTimeval(at, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limits); err != nil {
				t.Fatal(err)
			}
			_, _, err := unix.Recvfrom(at, make([]byte, 16), 0)
			return err == nil
		}
		for arrived < want && wait(awaitTimeout) {
			arrived++
		}
		for took = time.Since(began); wait(50 * time.Millisecond); arrived++ {
		}
		return arrived, took
	}
	if got, _ := passes(send, receive, to, 5); got != 5 {
		t.Fatalf("%d packets of 5 arrive", got)
	}
	for _, tt := range []struct {
		name        string
		linkFault   linkFault
		there, back int
	}{
		{"cut", linkFault{loss: 1}, 0, 0},
		{"cut one way", linkFault{from: []string{"a"}, to: []string{"b"}, loss: 1}, 0, 5},
		{"between others", linkFault{from: []string{"b"}, to: []string{"b"}, loss: 1}, 5, 5},
		{"doubled", linkFault{to: []string{"b"}, doubled: 1}, 10, 5},
		{"late", linkFault{delay: 30 * time.Millisecond, spread: 10 * time.Millisecond}, 5, 5},
	} {
		n.virtualSwitch.setFault(&tt.linkFault)
		there, took := passes(send, receive, to, tt.there)
		here, _ := passes(receive, send, back, tt.back)
		n.virtualSwitch.clearFault(&tt.linkFault)
		if there != tt.there || here != tt.back || took < tt.linkFault.delay {
			t.Errorf("%s: %d arrive there in %v, %d back; want %d and %d", tt.name, there, took, here,
				tt.there, tt.back)
		}
	}
	if got, _ := passes(send, receive, to, 5); got != 5 {
		t.Errorf("after the storm %d packets of 5 arrive", got)
	}
}

// datagrams opens a datagram socket on a host.
func datagrams(t *testing.T, n *testNetwork, host, address string) (fd int) {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		var at *os.File
		if at, err = os.Open("/run/netns/" + n.namespaceName(host)); err != nil {
			return
		}
		defer at.Close()
		if err = unix.Setns(int(at.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: 9})
	}()
	<-done
	if err != nil {
		t.Fatalf("a socket on %s: %v", host, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}
