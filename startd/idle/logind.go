package idle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// Logind hears from systemd's login manager, over the system bus, who is logged in where, which programs keep the machine from being idle, and when it is about to
// sleep (org.freedesktop.login1(5)). Sleep is delayed until tasks stand still: what runs on into it wakes up with connections and leases that are long gone.
type Logind struct {
	address string             // of the bus
	ours    func(pid int) bool // whether a process is a task's
}

const (
	logindName    = "logind"
	loginService  = "org.freedesktop.login1"
	loginPath     = "/org/freedesktop/login1"
	loginManager  = "org.freedesktop.login1.Manager"
	loginSession  = "org.freedesktop.login1.Session"
	properties    = "org.freedesktop.DBus.Properties"
	systemBus     = "unix:path=/run/dbus/system_bus_socket"
	answerWithin  = 3 * time.Second
	reconnect     = 5 * time.Second
	lookAtLogins  = 5 * time.Second        // when nothing is heard
	settle        = 500 * time.Millisecond // for tasks to be frozen before the machine sleeps; logind waits for 5 s (InhibitDelayMaxSec=)
	maxSessions   = 200                    // that are looked at
	signalBacklog = 64
)

// NewLogind returns the source. Ours reports whether a process is a task's, whose wish that the machine be awake is not its owner's.
func NewLogind(ours func(pid int) bool) *Logind {
	address := os.Getenv("DBUS_SYSTEM_BUS_ADDRESS")
	if address == "" {
		address = systemBus
	}
	return &Logind{address: address, ours: ours}
}

// Name is the source's name.
func (l *Logind) Name() string { return logindName }

// Run follows logind, and looks for it again when it is gone.
func (l *Logind) Run(ctx context.Context, tell func(Sight)) {
	book := &loginBook{}
	for ctx.Err() == nil {
		s := l.follow(ctx, book, tell)
		if ctx.Err() != nil {
			return
		}
		s.Name, s.Input, s.ConsoleInput = l.Name(), book.input, book.consoleInput
		tell(s)
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// follow tells what logind says until it says no more, and returns why.
func (l *Logind) follow(ctx context.Context, book *loginBook, tell func(Sight)) Sight {
	if path, ok := strings.CutPrefix(l.address, "unix:path="); ok {
		if _, err := os.Stat(strings.Split(path, ",")[0]); errors.Is(err, os.ErrNotExist) {
			return Sight{Text: "this machine has no system bus"}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := dbus.Connect(l.address, dbus.WithContext(ctx), dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	if err != nil {
		return ailing("the system bus (%s) does not answer: %v; start dbus.service", l.address, err)
	}
	defer conn.Close()
	f := &following{l: l, conn: conn, book: book, tell: tell}
	defer f.release()
	if err := f.find(ctx); err != nil {
		if errors.Is(err, errNoLogind) {
			return Sight{Text: err.Error()}
		}
		return ailing("logind does not answer: %v; see systemctl status systemd-logind", err)
	}
	return ailing("logind does not answer any more: %v; see systemctl status systemd-logind", f.run(ctx))
}

// ailing is a sight of something that does not work.
func ailing(format string, args ...any) Sight {
	return Sight{Health: Broken, Reach: Console, Text: fmt.Sprintf(format, args...)}
}

var errNoLogind = errors.New("no logind is on the system bus of this machine")

// following is one connection to logind.
type following struct {
	l       *Logind
	conn    *dbus.Conn
	book    *loginBook
	tell    func(Sight)
	owner   string // the bus's own name for logind, under which it sends
	signals chan *dbus.Signal

	delay    *os.File // while it is open, logind waits with sleep
	delayErr error
	sleeping bool
	ending   <-chan time.Time // delay may be closed then; nil: it stays
}

// find looks whether there is a logind, and asks to hear from it.
func (f *following) find(ctx context.Context) error {
	bus := f.conn.BusObject()
	var activatable []string
	var here bool
	if err := ask(ctx, bus, "org.freedesktop.DBus.NameHasOwner", []any{loginService}, &here); err != nil {
		return err
	}
	if !here {
		if err := ask(ctx, bus, "org.freedesktop.DBus.ListActivatableNames", nil, &activatable); err != nil {
			return err
		}
		if !slices.Contains(activatable, loginService) {
			return errNoLogind
		}
		var started uint32
		if err := ask(ctx, bus, "org.freedesktop.DBus.StartServiceByName", []any{loginService, uint32(0)}, &started); err != nil {
			return err
		}
	}
	if err := ask(ctx, bus, "org.freedesktop.DBus.GetNameOwner", []any{loginService}, &f.owner); err != nil {
		return err
	}
	f.signals = make(chan *dbus.Signal, signalBacklog)
	f.conn.Signal(f.signals)
	return f.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(loginService), dbus.WithMatchPathNamespace(loginPath))
}

// run looks at everything whenever logind has said anything, for what it says leaves out half: a session's properties change without a word (IdleSinceHint), inhibitors, too.
func (f *following) run(ctx context.Context) error {
	f.hold(ctx)
	tick := time.NewTicker(lookAtLogins)
	defer tick.Stop()
	for {
		if err := f.look(ctx); err != nil {
			return err
		}
		for heard := false; !heard; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-f.conn.Context().Done():
				return errors.New("the bus has closed the connection")
			case <-f.ending:
				f.release()
			case <-tick.C:
				heard = true
			case sig, ok := <-f.signals:
				if !ok {
					return errors.New("the bus has closed the connection")
				}
				// Everybody on the bus may send us what looks like logind's.
				heard = sig.Sender == f.owner
			}
		}
	}
}

// look asks for all that matters and tells it.
func (f *following) look(ctx context.Context) error {
	manager := f.conn.Object(loginService, loginPath)
	var sleeping dbus.Variant
	if err := ask(ctx, manager, properties+".Get", []any{loginManager, "PreparingForSleep"}, &sleeping); err != nil {
		return err
	}
	was := f.sleeping
	if f.sleeping, _ = sleeping.Value().(bool); f.sleeping && !was {
		// At once: the rest may take longer than there is time.
		f.tell(Sight{Name: logindName, Health: Well, Sleeping: true, Text: "the machine is about to sleep", Input: f.book.input, ConsoleInput: f.book.consoleInput})
		f.ending = time.After(settle)
	} else if !f.sleeping && was {
		f.hold(ctx)
	}
	var inhibitors []inhibitor
	if err := ask(ctx, manager, loginManager+".ListInhibitors", nil, &inhibitors); err != nil {
		return err
	}
	sessions, err := f.sessions(ctx, manager)
	if err != nil {
		return err
	}
	s := f.book.see(sessions, Now())
	s.Sleeping = f.sleeping
	if s.Busy = inUse(inhibitors, f.l.ours); s.Busy != "" {
		s.Text += "; " + s.Busy
	}
	if f.delayErr != nil {
		s.Text += fmt.Sprintf("; sleep does not wait for tasks (%v), which root may ask of it", f.delayErr)
	}
	f.tell(s)
	return nil
}

// sessions asks for all sessions. One that ends meanwhile is none.
func (f *following) sessions(ctx context.Context, manager dbus.BusObject) ([]login, error) {
	var listed []struct {
		ID   string
		UID  uint32
		User string
		Seat string
		Path dbus.ObjectPath
	}
	if err := ask(ctx, manager, loginManager+".ListSessions", nil, &listed); err != nil {
		return nil, err
	}
	var all []login
	for _, l := range listed[:min(len(listed), maxSessions)] {
		var p map[string]dbus.Variant
		err := ask(ctx, f.conn.Object(loginService, l.Path), properties+".GetAll", []any{loginSession}, &p)
		if gone := (dbus.Error{}); errors.As(err, &gone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, login{
			id: l.ID, user: l.User, seat: l.Seat, kind: of[string](p, "Type"), class: of[string](p, "Class"), tty: of[string](p, "TTY"),
			active: of[bool](p, "Active"), remote: of[bool](p, "Remote"), locked: of[bool](p, "LockedHint"),
			idle: of[bool](p, "IdleHint"), idleSince: fromMonotonic(of[uint64](p, "IdleSinceHintMonotonic")),
		})
	}
	return all, nil
}

// hold has sleep wait for us.
func (f *following) hold(ctx context.Context) {
	f.release()
	var fd dbus.UnixFD
	f.delayErr = ask(ctx, f.conn.Object(loginService, loginPath), loginManager+".Inhibit",
		[]any{"sleep", "roost", "tasks of the pool are stopped before the machine sleeps", "delay"}, &fd)
	if f.delayErr == nil {
		f.delay = os.NewFile(uintptr(fd), "inhibitor")
	}
}

// release lets the machine sleep.
func (f *following) release() {
	f.ending = nil
	if f.delay != nil {
		f.delay.Close()
		f.delay = nil
	}
}

// ask calls a method that has one result.
func ask(ctx context.Context, object dbus.BusObject, method string, args []any, to any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return object.CallWithContext(ctx, method, 0, args...).Store(to)
}

// of is a property, or the zero value where it is missing or of another type.
func of[T any](p map[string]dbus.Variant, name string) T {
	v, _ := p[name].Value().(T)
	return v
}

// fromMonotonic is the instant of a reading, in microseconds, of CLOCK_MONOTONIC, which stands still while the machine sleeps.
func fromMonotonic(usec uint64) Instant {
	var t unix.Timespec
	if usec == 0 || unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	age := max(time.Duration(t.Nano())-time.Duration(usec)*time.Microsecond, 0)
	return max(Now()-age, 1)
}
