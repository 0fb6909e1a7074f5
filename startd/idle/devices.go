package idle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// InputDevices notices keys, mice, touch screens, tablets and joysticks by the events of the kernel itself (Linux Documentation/input/input.rst). This process opens the devices,
// for which it has to be root; an agent without any rights reads them, and passes on nothing but times. So no key that anybody types is ever in the memory of a
// process that talks to others.
type InputDevices struct {
	dir     string // "/dev/input"
	program func() *exec.Cmd
	probe   func(fd int) (deviceKind, string, error)
}

// NewInputDevices returns the source. Agent is the command line of a program that calls RunInputAgent with its descriptor 3.
func NewInputDevices(agent ...string) *InputDevices {
	program := func() *exec.Cmd {
		// Not by name: nobody may not come there, and a new release may lie there by now.
		return &exec.Cmd{Path: "/proc/self/exe", Args: agent, Env: []string{"PATH=/usr/bin:/bin"}}
	}
	return &InputDevices{dir: "/dev/input", program: program, probe: probe}
}

// Name is the source's name.
func (d *InputDevices) Name() string { return "input devices" }

const (
	maxDevices    = 256
	lookAtDevices = 5 * time.Second        // when nothing is heard of new ones
	readyWithin   = 5 * time.Second        // for the agent to begin
	firstRestart  = 100 * time.Millisecond // after the agent's end; twice as long each time, until
	lastRestart   = 10 * time.Second
)

// inputDevice is a file in /dev/input that was looked at.
type inputDevice struct {
	inode  uint64
	number uint64 // 0: it is no person's
	name   string
}

// deviceWatch is the state of one Run.
type deviceWatch struct {
	d       *InputDevices
	tell    func(Sight)
	known   map[string]inputDevice // by path
	waiting int                    // devices of people that no agent reads yet
	failed  string                 // why a device cannot be opened; empty: all can
	numbers uint64

	conn     *net.UnixConn // to the agent; nil: there is none
	ready    bool
	heard    chan heardOf
	ended    string // why there is no agent any more; empty: it runs, or was never needed
	restart  time.Duration
	again    <-chan time.Time
	begun    time.Time
	running  sync.WaitGroup
	sight    Sight
	said     bool
	lastSaid Sight
}

// heardOf is a message of an agent, or its end.
type heardOf struct {
	from *net.UnixConn
	kind byte
	n    uint64
	err  error
}

// Run watches the devices.
func (d *InputDevices) Run(ctx context.Context, tell func(Sight)) {
	w := &deviceWatch{d: d, tell: tell, known: map[string]inputDevice{}, heard: make(chan heardOf), restart: firstRestart, sight: Sight{Name: d.Name(), Reach: Hardware}}
	ctx, cancel := context.WithCancel(ctx)
	var file *os.File
	defer func() {
		cancel()
		if file != nil {
			file.Close()
		}
		w.drop()
		w.running.Wait()
	}()
	plugs := make(chan []inotifyEvent)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	watching := false
	if err == nil {
		file = os.NewFile(uintptr(fd), "inotify")
		w.running.Go(func() { readEvents(ctx, file, plugs) })
	}
	tick := time.NewTicker(lookAtDevices)
	defer tick.Stop()
	for {
		if err == nil && !watching {
			_, werr := unix.InotifyAddWatch(fd, d.dir, unix.IN_CREATE|unix.IN_DELETE|unix.IN_ATTRIB|unix.IN_MOVED_TO)
			watching = werr == nil
		}
		w.scan(ctx)
		w.say()
		for look := false; !look; {
			select {
			case <-ctx.Done():
				return
			case batch := <-plugs:
				look = true
				for _, e := range batch {
					watching = watching && e.mask&unix.IN_IGNORED == 0
				}
			case <-tick.C:
				look = true
			case <-w.again:
				w.again, look = nil, true
			case h := <-w.heard:
				w.hear(h)
				w.say()
			}
		}
	}
}

// scan opens devices that are new, and has the agent read those of people. The agent is started when there is the first.
func (w *deviceWatch) scan(ctx context.Context) {
	paths, _ := filepath.Glob(filepath.Join(w.d.dir, "event*"))
	here := map[string]bool{}
	w.failed, w.waiting = "", 0
	for _, path := range paths[:min(len(paths), maxDevices)] {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			continue
		}
		here[path] = true
		if was, ok := w.known[path]; ok && was.inode == st.Ino {
			continue
		}
		delete(w.known, path)
		if err := w.open(ctx, path, st.Ino); err != nil {
			w.failed = fmt.Sprintf("%s: %v; %s", path, err, cureDevice(err))
		}
	}
	for path := range w.known {
		if !here[path] {
			delete(w.known, path)
		}
	}
}

func cureDevice(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "run roost guard as root"
	}
	return "dmesg may say what is wrong with it"
}

// open looks at one device. One that is unplugged this very moment is no failure.
func (w *deviceWatch) open(ctx context.Context, path string, inode uint64) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	kind, name, err := w.d.probe(fd)
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return err
	}
	if kind == noPerson {
		w.known[path] = inputDevice{inode: inode}
		return nil
	}
	if !w.start(ctx) {
		w.waiting++
		return nil // it is said why, and tried again
	}
	w.numbers++
	if _, _, err := w.conn.WriteMsgUnix(message(msgWatch, w.numbers|uint64(kind)<<32), unix.UnixRights(fd), nil); err != nil {
		return nil // its end is heard
	}
	w.known[path] = inputDevice{inode, w.numbers, plain(name)}
	return nil
}

// start has an agent run, unless one has just ended.
func (w *deviceWatch) start(ctx context.Context) bool {
	if w.conn != nil {
		return true
	}
	if w.again != nil {
		return false
	}
	conn, cmd, err := startAgent(w.d.program)
	if err != nil {
		w.failing(fmt.Sprintf("its agent does not start: %v; the program file has to be executable for everybody", err))
		return false
	}
	w.conn, w.ready, w.begun = conn, false, time.Now()
	_ = conn.SetReadDeadline(time.Now().Add(readyWithin))
	w.running.Go(func() { listen(ctx, conn, cmd, w.heard) })
	return true
}

// listen hands on what an agent says, and last its end. It is done when the process is gone.
func listen(ctx context.Context, conn *net.UnixConn, cmd *exec.Cmd, to chan<- heardOf) {
	pass := func(h heardOf) {
		select {
		case to <- h:
		case <-ctx.Done():
		}
	}
	for {
		kind, n, fd, err := receive(conn)
		if fd >= 0 { // it has nothing to give
			unix.Close(fd)
		}
		if err != nil {
			_ = cmd.Process.Kill()
			if ended := cmd.Wait(); ended != nil {
				err = ended
			}
			pass(heardOf{from: conn, err: err})
			return
		}
		if kind == msgReady {
			_ = conn.SetReadDeadline(time.Time{})
		}
		pass(heardOf{conn, kind, n, nil})
	}
}

// hear takes in what the agent said. All that it could lie about is when somebody was there.
func (w *deviceWatch) hear(h heardOf) {
	if h.from != w.conn {
		return
	}
	switch {
	case h.err != nil:
		lived := time.Since(w.begun)
		w.drop()
		if lived > lastRestart {
			w.restart = firstRestart
		}
		w.failing(fmt.Sprintf("its agent has ended (%v), and is started again", h.err))
	case h.kind == msgReady:
		w.ready, w.ended = true, ""
	case h.kind == msgTouch:
		at := min(Instant(h.n), Now())
		w.sight.Input = max(w.sight.Input, at)
		w.sight.ConsoleInput = w.sight.Input
	case h.kind == msgGone:
		for path, dev := range w.known {
			if dev.number == h.n {
				delete(w.known, path) // if it is still there, it is found again
			}
		}
	}
}

// failing plans the next start.
func (w *deviceWatch) failing(why string) {
	w.ended, w.again = why, time.After(w.restart)
	w.restart = min(2*w.restart, lastRestart)
}

// drop ends the agent, and forgets what it watched.
func (w *deviceWatch) drop() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
	for path, dev := range w.known {
		if dev.number != 0 {
			delete(w.known, path)
		}
	}
}

// say tells what is seen where it has changed. While the agent starts there is nothing to say yet.
func (w *deviceWatch) say() {
	var names []string
	for _, dev := range w.known {
		if dev.number != 0 {
			names = append(names, dev.name)
		}
	}
	slices.Sort(names)
	switch {
	case w.failed != "":
		w.sight.Health, w.sight.Text = Broken, w.failed
	case w.ended != "" && len(names)+w.waiting > 0:
		w.sight.Health, w.sight.Text = Broken, w.ended
	case len(names) == 0:
		w.sight.Health, w.sight.Text = Absent, "this machine has no keyboard, mouse, touch screen, tablet or joystick"
	case !w.ready:
		return
	default:
		w.sight.Health, w.sight.Text = Well, list(names)
	}
	if !w.said || w.sight != w.lastSaid {
		w.said, w.lastSaid = true, w.sight
		w.tell(w.sight)
	}
}
