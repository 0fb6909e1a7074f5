package steps

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/step"
	"github.com/roost-batch/roost/internal/slurm/steptable"
)

// A step has a socket in the temporary directory of its job, by which scancel and sattach
// reach it. Only processes of the same user are answered.

// stepListener is the socket.
type stepListener struct {
	fd   int
	path string
}

// listen opens the socket of the step. A step without one runs all the same.
func (r *stepRun) listen() {
	if r.claim == nil {
		return
	}
	path := filepath.Join(cmp.Or(r.c.Getenv("TMPDIR"), os.TempDir()),
		fmt.Sprintf(".roost-step-%s.%d", r.job.id, r.number))
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return
	}
	defer directory.Close()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	_ = os.Remove(path) // of an earlier attempt of the job
	before := syscall.Umask(0o077)
	// its own name may be too long (unix(7))
	err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", directory.Fd(),
		filepath.Base(path))})
	syscall.Umask(before)
	if err == nil {
		err = syscall.Listen(fd, 16)
	}
	if err == nil {
		err = r.claim.SetSocket(path)
	}
	if err != nil {
		syscall.Close(fd)
		return
	}
	r.listener = &stepListener{fd, path}
	go r.accept()
}

func (l *stepListener) close() {
	_ = os.Remove(l.path)
	_ = syscall.Shutdown(l.fd, syscall.SHUT_RDWR) // the goroutine that accepts ends
}

// accept takes in calls until the socket is closed.
func (r *stepRun) accept() {
	for {
		fd, _, err := syscall.Accept4(r.listener.fd, syscall.SOCK_CLOEXEC)
		switch {
		case err == syscall.EINTR, err == syscall.ECONNABORTED:
			continue
		case err != nil:
			syscall.Close(r.listener.fd)
			return
		}
		peer, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		if err != nil || int(peer.Uid) != os.Geteuid() {
			syscall.Close(fd)
			continue
		}
		_ = syscall.SetNonblock(fd, true)
		go r.readCall(os.NewFile(uintptr(fd), "call"))
	}
}

// callTimeout bounds how long a caller may take to say what it wants.
const callTimeout = 10 * time.Second

// readCall reads what a caller wants.
func (r *stepRun) readCall(conn *os.File) {
	_ = conn.SetReadDeadline(time.Now().Add(callTimeout))
	f, err := step.ReadFrame(conn)
	if err != nil {
		conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	r.events <- socketCall{conn, f}
}

// applyCall does what a caller wants.
func (r *stepRun) applyCall(call socketCall) {
	stays := call.frame.Kind == step.FrameAttach && r.directStreams().Out == nil
	a := newAttachment(call.conn, stays)
	answer := step.Frame{Kind: step.FrameDone, Data: []byte{0}}
	switch f := call.frame; {
	case f.Kind == step.FrameCancel:
		if !r.isStopped {
			r.cancel("", steptable.EndCancelled)
		}
	case f.Kind == step.FrameSignal && len(f.Data) == 1:
		r.sendSignal(syscall.Signal(f.Data[0]))
	case f.Kind == step.FrameLayout:
		answer = step.Frame{Kind: step.FrameLayout, Data: []byte(r.layout())}
	case f.Kind == step.FrameAttach && !stays:
		answer = step.Frame{Kind: step.FrameRefuse, Data: []byte("its only task writes to the file of the job " +
			"itself: read that")}
	case f.Kind == step.FrameAttach:
		if len(f.Data) > 0 && f.Data[0] == step.AttachSize {
			a.send(step.Frame{Kind: step.FrameSize, Task: uint32(r.placement.Size)})
		}
		for _, f := range r.recent {
			a.send(f)
		}
		r.attached = append(r.attached, a)
		go r.pumpAttached(a)
		return
	default:
		answer = step.Frame{Kind: step.FrameRefuse, Data: []byte("that is no call of this release")}
	}
	a.send(answer)
	close(a.queue)
}

// layout says where the tasks are, in the words of sattach --layout.
func (r *stepRun) layout() string {
	var names []string
	var b strings.Builder
	for i := range r.placement.Machines {
		names = append(names, r.machineName(i))
		fmt.Fprintf(&b, "\n\tNode %d (%s), %d task(s): ", i, r.machineName(i), len(r.placement.Tasks[i]))
		for _, task := range r.placement.Tasks[i] {
			fmt.Fprintf(&b, "%d ", task)
		}
	}
	return fmt.Sprintf("Job step layout:\n\t%d tasks, %d nodes (%s)\n%s\n", r.placement.Size, len(names),
		hostlist.Compress(names), b.String())
}

// attachment is a caller that is sent what tasks write.
type attachment struct {
	conn  *os.File
	queue chan step.Frame
	done  chan struct{} // closed when all is sent
	gone  chan struct{} // closed when the caller has gone; nil: that is not waited for
}

// attachedFrames is how many frames wait for a caller. One that does not read is left.
const attachedFrames = 256

func newAttachment(conn *os.File, stays bool) *attachment {
	a := &attachment{conn: conn, queue: make(chan step.Frame, attachedFrames), done: make(chan struct{})}
	if stays {
		a.gone = make(chan struct{})
	}
	go func() {
		defer close(a.done)
		defer conn.Close()
		for f := range a.queue {
			_ = conn.SetWriteDeadline(time.Now().Add(callTimeout))
			if _, err := conn.Write(f.Append(nil)); err != nil {
				break
			}
		}
		a.awaitCaller()
		for range a.queue { // so that nobody waits
		}
	}()
	return a
}

// send queues a frame, and reports whether there was room.
func (a *attachment) send(f step.Frame) bool {
	select {
	case a.queue <- f:
		return true
	default:
		return false
	}
}

// close has what is queued sent, for a bounded time, and the connection closed.
func (a *attachment) close() {
	close(a.queue)
	select {
	case <-a.done:
	case <-time.After(callTimeout):
	}
}

// recentFrames and recentBytes bound what was written last, which who attaches sees, too.
const (
	recentFrames = 128
	recentBytes  = 256 << 10
)

// awaitCaller gives a caller a bounded time to show what it has been sent. The end of the
// step may be that of its job, and of the caller with it.
func (a *attachment) awaitCaller() {
	if a.gone == nil {
		return
	}
	select {
	case <-a.gone:
	case <-time.After(callerTime):
	}
}

// callerTime is how long that is.
const callerTime = 2 * time.Second

// copyOutput sends what a task writes to those that are attached.
func (r *stepRun) copyOutput(f step.Frame) {
	r.recent = append(r.recent, f)
	r.recentSize += len(f.Data)
	for len(r.recent) > recentFrames || r.recentSize > recentBytes && len(r.recent) > 1 {
		r.recentSize -= len(r.recent[0].Data)
		r.recent = r.recent[1:]
	}
	r.attached = slices.DeleteFunc(r.attached, func(a *attachment) bool {
		if a.send(f) {
			return false
		}
		close(a.queue)
		return true
	})
}

// pumpAttached gives the input of a caller to the tasks, until it has gone.
func (r *stepRun) pumpAttached(a *attachment) {
	defer close(a.gone)
	for {
		f, err := step.ReadFrame(a.conn)
		if err != nil {
			return
		}
		if f.Kind == step.FrameInput || f.Kind == step.FrameInputEnd {
			r.sendAll(step.Frame{Kind: f.Kind, Task: f.Task, Data: f.Data})
		}
	}
}
