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

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
)

// InputDeviceSource detects input of keyboards, mice, touch screens, tablets and
// joysticks. It uses the kernel's input events (Linux Documentation/input/input.rst).
// This process opens the devices, which requires root; an agent without any rights reads
// them and reports only times. So no process that communicates with others ever has typed
// keys in its memory.
type InputDeviceSource struct {
	deviceDir    string // "/dev/input"
	agentProgram func() *exec.Cmd
	probe        func(fd int) (deviceKind, string, error)
}

// NewInputDevices returns the source. Agent is the command line of a program that calls
// RunInputAgent with its descriptor 3.
func NewInputDevices(agent ...string) *InputDeviceSource {
	program := func() *exec.Cmd {
		// Not by name: the user nobody may lack access, and the file may be a newer
		// release.
		return &exec.Cmd{Path: "/proc/self/exe", Args: agent, Env: []string{"PATH=/usr/bin:/bin"}}
	}
	return &InputDeviceSource{deviceDir: "/dev/input", agentProgram: program, probe: probeDevice}
}

// Name is the source's name.
func (d *InputDeviceSource) Name() string { return "input devices" }

const (
	maxDevices         = 256
	deviceScanInterval = 5 * time.Second // interval of scans without events
	agentStartTimeout  = 5 * time.Second // time for the agent to start
	// after the agent's end; doubled after each failure, up to maxRestartDelay
	firstRestartDelay = 100 * time.Millisecond
	maxRestartDelay   = 10 * time.Second
)

// inputDevice is a probed file in /dev/input.
type inputDevice struct {
	inode  uint64
	number uint64 // number in messages; 0: the device is not for people
	name   string
}

// deviceWatch is the state of one Run.
type deviceWatch struct {
	source    *InputDeviceSource
	publish   func(SourceReading)
	known     map[string]inputDevice // by path
	unwatched int                    // number of people's devices that no agent reads yet
	openError string                 // why a device cannot be opened; empty: all can
	numbers   uint64

	conn          *net.UnixConn // to the agent; nil: there is none
	ready         bool
	messages      chan agentMessage
	exitReason    string // why there is no agent any more; empty: it runs, or was never needed
	restart       time.Duration
	restartDelay  <-chan time.Time
	startedAt     time.Time
	running       sync.WaitGroup
	reading       SourceReading
	hasPublished  bool
	lastPublished SourceReading
}

// agentMessage is a message of an agent, or its end.
type agentMessage struct {
	from   *net.UnixConn
	kind   byte
	number uint64
	err    error
}

// Run watches the devices.
func (d *InputDeviceSource) Run(ctx context.Context, tell func(SourceReading)) {
	w := &deviceWatch{source: d, publish: tell, known: map[string]inputDevice{}, messages: make(chan agentMessage),
		restart: firstRestartDelay, reading: SourceReading{Name: d.Name(), Coverage: Hardware}}
	ctx, cancel := context.WithCancel(ctx)
	var file *os.File
	defer func() {
		cancel()
		if file != nil {
			file.Close()
		}
		w.dropAgent()
		w.running.Wait()
	}()
	plugs := make(chan []inotifyEvent)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	watching := false
	if err == nil {
		file = os.NewFile(uintptr(fd), "inotify")
		w.running.Go(func() { readEvents(ctx, file, plugs) })
	}
	tick := time.NewTicker(deviceScanInterval)
	defer tick.Stop()
	for {
		if err == nil && !watching {
			_, werr := unix.InotifyAddWatch(fd, d.deviceDir,
				unix.IN_CREATE|unix.IN_DELETE|unix.IN_ATTRIB|unix.IN_MOVED_TO)
			watching = werr == nil
		}
		w.scanDevices(ctx)
		w.publishReading()
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
			case <-w.restartDelay:
				w.restartDelay, look = nil, true
			case h := <-w.messages:
				w.onAgentMessage(h)
				w.publishReading()
			}
		}
	}
}

// scanDevices opens new devices, and passes those that people use to the agent. It starts
// the agent for the first of them.
func (w *deviceWatch) scanDevices(ctx context.Context) {
	paths, _ := filepath.Glob(filepath.Join(w.source.deviceDir, "event*"))
	here := map[string]bool{}
	w.openError, w.unwatched = "", 0
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
		if err := w.openDevice(ctx, path, st.Ino); err != nil {
			w.openError = fmt.Sprintf("%s: %v; %s", path, err, deviceHint(err))
		}
	}
	for path := range w.known {
		if !here[path] {
			delete(w.known, path)
		}
	}
}

func deviceHint(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "run roost guard as root"
	}
	return "dmesg may say what is wrong with it"
}

// openDevice opens and probes one device. A device that is unplugged meanwhile is no
// error.
func (w *deviceWatch) openDevice(ctx context.Context, path string, inode uint64) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	kind, name, err := w.source.probe(fd)
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
	if !w.startAgent(ctx) {
		w.unwatched++
		return nil // publishReading reports the reason, and the next scan tries again
	}
	w.numbers++
	if _, _, err := w.conn.WriteMsgUnix(encodeMessage(msgWatchDevice, w.numbers|uint64(kind)<<32), unix.UnixRights(fd),
		nil); err != nil {
		return nil // receiveMessages reports the agent's end
	}
	w.known[path] = inputDevice{inode, w.numbers, printableText(name)}
	return nil
}

// startAgent starts an agent if none is running. It returns false after a recent failure.
func (w *deviceWatch) startAgent(ctx context.Context) bool {
	if w.conn != nil {
		return true
	}
	if w.restartDelay != nil {
		return false
	}
	conn, cmd, err := startAgent(w.source.agentProgram)
	if err != nil {
		w.scheduleRestart(fmt.Sprintf("its agent does not start: %v; the program file has to be executable for "+
			"everybody", err))
		return false
	}
	w.conn, w.ready, w.startedAt = conn, false, time.Now()
	_ = conn.SetReadDeadline(time.Now().Add(agentStartTimeout))
	w.running.Go(func() { receiveMessages(ctx, conn, cmd, w.messages) })
	return true
}

// receiveMessages passes on the messages of an agent, and finally its end. It returns
// when the process is gone.
func receiveMessages(ctx context.Context, conn *net.UnixConn, cmd *exec.Cmd, to chan<- agentMessage) {
	pass := func(h agentMessage) {
		select {
		case to <- h:
		case <-ctx.Done():
		}
	}
	for {
		kind, n, fd, err := receiveMessage(conn)
		if fd >= 0 { // an agent has no descriptors to send
			unix.Close(fd)
		}
		if err != nil {
			_ = cmd.Process.Kill()
			if ended := cmd.Wait(); ended != nil {
				err = ended
			}
			pass(agentMessage{from: conn, err: err})
			return
		}
		if kind == msgAgentReady {
			_ = conn.SetReadDeadline(time.Time{})
		}
		pass(agentMessage{conn, kind, n, nil})
	}
}

// onAgentMessage handles a message of the agent. The agent could only lie about the time
// of input.
func (w *deviceWatch) onAgentMessage(h agentMessage) {
	if h.from != w.conn {
		return
	}
	switch {
	case h.err != nil:
		lived := time.Since(w.startedAt)
		w.dropAgent()
		if lived > maxRestartDelay {
			w.restart = firstRestartDelay
		}
		w.scheduleRestart(fmt.Sprintf("its agent has ended (%v), and is started again", h.err))
	case h.kind == msgAgentReady:
		w.ready, w.exitReason = true, ""
	case h.kind == msgInput:
		at := min(roost.BootTime(h.number), boottime.Now())
		w.reading.Input = max(w.reading.Input, at)
		w.reading.ConsoleInput = w.reading.Input
	case h.kind == msgDeviceGone:
		for path, dev := range w.known {
			if dev.number == h.number {
				delete(w.known, path) // if it still exists, the next scan finds it
			}
		}
	}
}

// scheduleRestart schedules the next start of an agent.
func (w *deviceWatch) scheduleRestart(why string) {
	w.exitReason, w.restartDelay = why, time.After(w.restart)
	w.restart = min(2*w.restart, maxRestartDelay)
}

// dropAgent ends the agent and removes the devices that it watched.
func (w *deviceWatch) dropAgent() {
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

// publishReading publishes the reading if it has changed. It publishes nothing while the
// agent starts.
func (w *deviceWatch) publishReading() {
	var names []string
	for _, dev := range w.known {
		if dev.number != 0 {
			names = append(names, dev.name)
		}
	}
	slices.Sort(names)
	switch {
	case w.openError != "":
		w.reading.Health, w.reading.Text = Broken, w.openError
	case w.exitReason != "" && len(names)+w.unwatched > 0:
		w.reading.Health, w.reading.Text = Broken, w.exitReason
	case len(names) == 0:
		w.reading.Health, w.reading.Text = Absent,
			"this machine has no keyboard, mouse, touch screen, tablet or joystick"
	case !w.ready:
		return
	default:
		w.reading.Health, w.reading.Text = Healthy, joinNames(names)
	}
	if !w.hasPublished || w.reading != w.lastPublished {
		w.hasPublished, w.lastPublished = true, w.reading
		w.publish(w.reading)
	}
}
