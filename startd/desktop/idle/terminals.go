package idle

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
)

// TerminalSource detects people who type into a terminal: over ssh, in a window, on a
// text console. A program's read from a terminal means a pressed key. Output does not
// count, as a forgotten program may print for ever.
//
// The kernel records the time of the last read (the terminal's atime, which w(1) shows),
// but only to eight seconds; inotify(7) reports each read at once. Each terminal needs a
// watch of its own: since Linux 6.19 a watch on /dev/pts does not report reads any more,
// because they revealed when others type. If this process may not read a terminal it
// checks the atime each second.
type TerminalSource struct {
	dev            string // "/dev"
	isTaskTerminal func(terminal uint64) bool
}

// NewTerminals returns the source. Ours reports whether a terminal, by its device number,
// belongs to a task: input there is not the owner's.
func NewTerminals(ours func(terminal uint64) bool) *TerminalSource {
	return &TerminalSource{dev: "/dev", isTaskTerminal: ours}
}

// Name is the source's name.
func (t *TerminalSource) Name() string { return "terminals" }

const (
	// interval of scans for new terminals without events, and of polls
	terminalScanInterval = time.Second
	inputReportInterval  = 50 * time.Millisecond // shortest interval of reports of input
	// interval of checks whether a terminal belongs to a task, which may change
	ownershipCheckInterval = 10 * time.Second
	// granularity of a terminal's atime: a key this soon after another leaves it
	// unchanged
	atimeGranularity = 8 * time.Second
)

// terminalState is the last known state of one terminal.
type terminalState struct {
	path           string
	device         uint64
	console        bool           // it is a console of the machine itself
	polled         bool           // inotify does not report its reads
	accessed       int64          // its atime in unix nanoseconds
	ownerCheckedAt roost.BootTime // boot time of the last check of isTask; 0: never
	isTask         bool           // it belongs to a task
}

// Run watches the terminals.
func (t *TerminalSource) Run(ctx context.Context, tell func(SourceReading)) {
	w := &terminalWatch{source: t, publish: tell, known: map[string]*terminalState{},
		byWatch: map[int32]*terminalState{}, reading: SourceReading{Name: t.Name(), Coverage: Terminal}}
	events := make(chan []inotifyEvent)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == nil {
		w.inotify = os.NewFile(uintptr(fd), "inotify")
		for _, dir := range []string{t.dev, filepath.Join(t.dev, "pts")} {
			unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_DELETE|unix.IN_ATTRIB)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			readEvents(ctx, w.inotify, events)
		}()
		defer func() { w.inotify.Close(); <-done }()
	}
	w.scanTerminals(boottime.Now())
	w.publishReading()
	tick := time.NewTicker(terminalScanInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case batch := <-events:
			w.onInotify(batch, boottime.Now())
		case <-tick.C:
			w.scanTerminals(boottime.Now())
			w.publishReading()
		}
	}
}

// terminalWatch is the state of one Run.
type terminalWatch struct {
	source        *TerminalSource
	publish       func(SourceReading)
	inotify       *os.File // nil: there is none
	known         map[string]*terminalState
	byWatch       map[int32]*terminalState
	reading       SourceReading
	lastPublished SourceReading
	scanned       bool // all terminals were scanned once
}

func (w *terminalWatch) publishReading() {
	if w.reading != w.lastPublished {
		w.lastPublished = w.reading
		w.publish(w.reading)
	}
}

// onInotify handles events of inotify.
func (w *terminalWatch) onInotify(batch []inotifyEvent, now roost.BootTime) {
	look := false
	for _, e := range batch {
		term := w.byWatch[e.watch]
		switch {
		case e.mask&unix.IN_ACCESS != 0 && term != nil:
			w.onRead(term, now)
		case e.mask&unix.IN_IGNORED != 0:
			delete(w.byWatch, e.watch)
		case e.mask&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_ATTRIB|unix.IN_Q_OVERFLOW) != 0:
			look = true
		}
	}
	if look {
		w.scanTerminals(now)
	}
	w.publishReading()
}

// onRead counts a read of a terminal as input, unless the terminal belongs to a task.
func (w *terminalWatch) onRead(term *terminalState, now roost.BootTime) {
	if term.ownerCheckedAt == 0 || !term.isTask && now-term.ownerCheckedAt > ownershipCheckInterval {
		term.ownerCheckedAt, term.isTask = now, w.source.isTaskTerminal(term.device)
	}
	if term.isTask {
		return
	}
	w.reading.Input = now
	if term.console {
		w.reading.ConsoleInput = now
	}
}

// scanTerminals finds new terminals, removes closed ones, and checks the atimes of those
// without a watch.
func (w *terminalWatch) scanTerminals(now roost.BootTime) {
	wall := time.Now().UnixNano()
	paths, err := listTerminals(w.source.dev)
	if err != nil {
		w.reading.Health, w.reading.Text = Broken, fmt.Sprintf("%v; mount devpts there, and let this user read it", err)
		return
	}
	here := map[string]bool{}
	polled := 0
	for _, path := range paths {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
			continue
		}
		here[path] = true
		term := w.known[path]
		if term != nil && term.device != st.Rdev {
			term = nil
		}
		if term == nil {
			term = &terminalState{path: path, device: st.Rdev, console: isVirtualConsole(path),
				accessed: st.Atim.Nano(), polled: true}
			w.known[path] = term
			// Keys from before the start of the source count, as late as the kernel's
			// granularity permits. A new terminal has had no input yet.
			if age := max(time.Duration(wall-term.accessed)-atimeGranularity, 0); !w.scanned && age < now &&
				now-age > w.reading.Input {
				w.onRead(term, now-age)
			}
		}
		if term.polled && w.addWatch(term) {
			unix.Stat(path, &st) // a key between the stat above and the watch caused no event
			w.checkAccess(term, st.Atim.Nano(), now)
		}
		if term.polled {
			polled++
			w.checkAccess(term, st.Atim.Nano(), now)
		}
	}
	maps.DeleteFunc(w.known, func(path string, _ *terminalState) bool { return !here[path] })
	w.scanned = true
	w.describe(polled)
}

// checkAccess counts a later atime than the last as input.
func (w *terminalWatch) checkAccess(term *terminalState, accessed int64, now roost.BootTime) {
	if accessed > term.accessed {
		term.accessed = accessed
		w.onRead(term, now)
	}
}

// addWatch adds an inotify watch for a terminal. A failure is retried at each scan, as
// rights and limits may change.
func (w *terminalWatch) addWatch(term *terminalState) bool {
	if w.inotify == nil {
		return false
	}
	wd, err := unix.InotifyAddWatch(int(w.inotify.Fd()), term.path, unix.IN_ACCESS)
	if err != nil {
		return false
	}
	term.polled = false
	w.byWatch[int32(wd)] = term
	return true
}

func (w *terminalWatch) describe(polled int) {
	n := len(w.known)
	w.reading.Health = Healthy
	switch {
	case n == 0:
		w.reading.Text = "there is none now"
	case polled == 0:
		w.reading.Text = fmt.Sprintf("%d, of which the kernel tells at once", n)
	default:
		w.reading.Text = fmt.Sprintf("%d, of which the kernel tells at once; %d of them to 8 s only", n-polled, polled)
		if polled == n {
			w.reading.Text = fmt.Sprintf("%d, to 8 s only: this user may not read them", n)
		}
	}
}

// listTerminals lists the terminals into which a person may type. It excludes /dev/tty,
// which is the terminal of the process that opens it.
func listTerminals(dev string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dev, "pts"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if e.Name() != "ptmx" {
			all = append(all, filepath.Join(dev, "pts", e.Name()))
		}
	}
	others, _ := filepath.Glob(filepath.Join(dev, "tty*"))
	others = slices.DeleteFunc(others, func(path string) bool { return path == filepath.Join(dev, "tty") })
	return append(all, others...), nil
}

// isVirtualConsole reports whether a terminal is one of the machine's own screen and
// keyboard: tty0 to tty63 (vt(4)).
func isVirtualConsole(path string) bool {
	number, ok := strings.CutPrefix(filepath.Base(path), "tty")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
