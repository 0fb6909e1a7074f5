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
)

// Terminals notices who types into a terminal: over ssh, in a window, on a text console. A read of a terminal by a program is a key that somebody pressed;
// output is nothing, for a forgotten program may print for ever.
//
// The kernel keeps the time of the last read (the terminal's atime, that w(1) shows), but to eight seconds only; inotify(7) tells of each read at once. It has to be asked
// for every terminal by itself: since Linux 6.19 a watch on /dev/pts does not tell of reads any more, because they gave away when others type. Where this process may not read a
// terminal, its atime is looked at each second.
type Terminals struct {
	dev  string // "/dev"
	ours func(terminal uint64) bool
}

// NewTerminals returns the source. Ours reports whether a terminal, by its device number, belongs to a task: whoever types there is no owner.
func NewTerminals(ours func(terminal uint64) bool) *Terminals {
	return &Terminals{dev: "/dev", ours: ours}
}

// Name is the source's name.
func (t *Terminals) Name() string { return "terminals" }

const (
	lookEvery   = time.Second           // for new terminals where nothing tells of them, and for those that are polled
	tellEvery   = 50 * time.Millisecond // of input, at most, after the first
	forgetAfter = 10 * time.Second      // a terminal that was nobody's task's may become one's
	grain       = 8 * time.Second       // of a terminal's atime: a key within so long of the one before leaves it as it is
)

// terminal is one terminal as it was last looked at.
type terminal struct {
	path     string
	device   uint64
	console  bool    // of the machine itself
	polled   bool    // inotify does not tell of it
	accessed int64   // unix nanoseconds of its atime
	asked    Instant // when it was asked whose it is; 0: never
	own      bool    // it is a task's
}

// Run watches the terminals.
func (t *Terminals) Run(ctx context.Context, tell func(Sight)) {
	w := &terminalWatch{t: t, tell: tell, known: map[string]*terminal{}, byWatch: map[int32]*terminal{}, sight: Sight{Name: t.Name(), Reach: Terminal}}
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
	w.scan(Now())
	w.say()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case batch := <-events:
			w.heard(batch, Now())
		case <-tick.C:
			w.scan(Now())
			w.say()
		}
	}
}

// terminalWatch is the state of one Run.
type terminalWatch struct {
	t       *Terminals
	tell    func(Sight)
	inotify *os.File // nil: there is none
	known   map[string]*terminal
	byWatch map[int32]*terminal
	sight   Sight
	told    Sight
	begun   bool // all terminals were looked at once
}

func (w *terminalWatch) say() {
	if w.sight != w.told {
		w.told = w.sight
		w.tell(w.sight)
	}
}

// heard takes in what inotify has told.
func (w *terminalWatch) heard(batch []inotifyEvent, now Instant) {
	look := false
	for _, e := range batch {
		term := w.byWatch[e.watch]
		switch {
		case e.mask&unix.IN_ACCESS != 0 && term != nil:
			w.typed(term, now)
		case e.mask&unix.IN_IGNORED != 0:
			delete(w.byWatch, e.watch)
		case e.mask&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_ATTRIB|unix.IN_Q_OVERFLOW) != 0:
			look = true
		}
	}
	if look {
		w.scan(now)
	}
	w.say()
}

// typed takes a read of a terminal for its user's doing, unless he is a task's.
func (w *terminalWatch) typed(term *terminal, now Instant) {
	if term.asked == 0 || !term.own && now-term.asked > forgetAfter {
		term.asked, term.own = now, w.t.ours(term.device)
	}
	if term.own {
		return
	}
	w.sight.Input = now
	if term.console {
		w.sight.ConsoleInput = now
	}
}

// scan finds new terminals, forgets those that are gone, and looks at the times of those of which inotify does not tell.
func (w *terminalWatch) scan(now Instant) {
	wall := time.Now().UnixNano()
	paths, err := terminalsIn(w.t.dev)
	if err != nil {
		w.sight.Health, w.sight.Text = Broken, fmt.Sprintf("%v; mount devpts there, and let this user read it", err)
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
			term = &terminal{path: path, device: st.Rdev, console: virtual(path), accessed: st.Atim.Nano(), polled: true}
			w.known[path] = term
			// What was typed before we came counts, as late as the kernel's memory of it allows. A terminal that is new has nothing typed into it yet.
			if age := max(time.Duration(wall-term.accessed)-grain, 0); !w.begun && age < now && now-age > w.sight.Input {
				w.typed(term, now-age)
			}
		}
		if term.polled && w.watch(term) {
			unix.Stat(path, &st) // a key after the look above and before the watch has told nobody
			w.see(term, st.Atim.Nano(), now)
		}
		if term.polled {
			polled++
			w.see(term, st.Atim.Nano(), now)
		}
	}
	maps.DeleteFunc(w.known, func(path string, _ *terminal) bool { return !here[path] })
	w.begun = true
	w.describe(polled)
}

// see takes a later atime than the last for somebody's doing.
func (w *terminalWatch) see(term *terminal, accessed int64, now Instant) {
	if accessed > term.accessed {
		term.accessed = accessed
		w.typed(term, now)
	}
}

// watch asks inotify for reads of the terminal, again and again while that is refused: rights may come, and limits be raised.
func (w *terminalWatch) watch(term *terminal) bool {
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
	w.sight.Health = Well
	switch {
	case n == 0:
		w.sight.Text = "there is none now"
	case polled == 0:
		w.sight.Text = fmt.Sprintf("%d, of which the kernel tells at once", n)
	default:
		w.sight.Text = fmt.Sprintf("%d, of which the kernel tells at once; %d of them to 8 s only", n-polled, polled)
		if polled == n {
			w.sight.Text = fmt.Sprintf("%d, to 8 s only: this user may not read them", n)
		}
	}
}

// terminalsIn lists what may be a terminal that somebody types into. /dev/tty stands for that of whoever opens it.
func terminalsIn(dev string) ([]string, error) {
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

// virtual reports whether a terminal is one of the machine's own screen and keyboard: tty0 to tty63 (vt(4)).
func virtual(path string) bool {
	number, ok := strings.CutPrefix(filepath.Base(path), "tty")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
